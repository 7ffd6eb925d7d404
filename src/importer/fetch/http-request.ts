// One HTTP request, with its body as the bytes that came. Node's own `fetch` is not used, because it unpacks gzip and
// takes one that was cut short for whole.

import { lookup as systemLookup } from 'node:dns'
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { retryAfterOf } from './back-off.ts'
import { sourceLimit } from './describe-wait.ts'
import { asFetchFault, BrokenAnswer, FetchStop, FetchWait } from './fetch-faults.ts'
import { redactSecrets } from './fetch-secrets.ts'
import { type Hop, type Reach, reachOf, redirectedTo } from './redirects.ts'

export interface HttpRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** For so long nothing has to come; as long as sources take for a large window, unless given. */
  readonly idleMs?: number
  /** Finds the addresses of a name; the system's unless given. */
  readonly lookup?: LookupFunction
  /** Told of redirects that are followed, and that a person should know of. */
  readonly warn: (line: string) => void
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Ends with an error when fewer bytes come than were announced. */
  readonly body: IncomingMessage
  /** The kind of network of the address that answered. */
  readonly reach: Reach
}

/** Sources take minutes before the first byte of a large window. */
const patientMs = 10 * 60_000
const redirectsMax = 5
const errorTextBytes = 4_096

/** Follows redirects of GET and HEAD; another origin gets no authorization. @throws FetchWait, FetchStop, BrokenAnswer */
export async function sendRequest(request: HttpRequest): Promise<HttpAnswer> {
  const { url: firstUrl, lookup = systemLookup, warn } = request
  let { headers = {} } = request
  let hop: Hop = { url: firstUrl, lookup }
  for (let redirects = 0; ; redirects++) {
    const answer = await sendOnce({ ...request, ...hop, headers }, redirects > 0)
    const location = answer.headers.location
    if (![301, 302, 303, 307, 308].includes(answer.status) || location === undefined || request.method === 'POST')
      return answer
    answer.body.resume()
    if (redirects === redirectsMax) throw new FetchStop(`${hop.url.host} redirects in a circle.`)
    const next = redirectedTo(location, { from: hop.url, reach: answer.reach, lookup, warn })
    if (next.url.origin !== hop.url.origin) {
      const { authorization: _, ...rest } = headers
      headers = rest
    }
    hop = next
  }
}

function sendOnce(
  { method = 'GET', url, headers, body, signal, idleMs = patientMs, lookup = systemLookup }: HttpRequest,
  isRedirected: boolean,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? tlsRequest : plainRequest
    const options = { method, signal, lookup, headers: { 'user-agent': 'pennon-import', ...headers } }
    // A connection that is open already would be taken without a look at its address.
    const outgoing = send(url, isRedirected ? { ...options, agent: false } : options)
    // Too much may have been asked for, so this is no mere wait.
    outgoing.setTimeout(idleMs, () => outgoing.destroy(new BrokenAnswer('the source does not answer in time')))
    outgoing.on('error', cause => {
      // A connection that is closed before any answer says nothing about the window.
      const isClosed = (cause as NodeJS.ErrnoException).code === 'ECONNRESET'
      reject(isClosed ? new FetchWait('the source closed the connection') : asFetchFault(cause))
    })
    outgoing.on('response', answer => {
      const reach = reachOf(answer.socket.remoteAddress ?? '')
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: answer, reach })
    })
    outgoing.end(body)
  })
}

/**
 * The fault that a status other than the expected ones stands for, with the source's own words.
 * @param secrets masked in these words.
 */
export async function faultOfStatus(
  { status, headers, body }: HttpAnswer,
  { source, secrets, nowMs }: { readonly source: string; readonly secrets: readonly string[]; readonly nowMs: number },
): Promise<FetchStop | FetchWait> {
  const text = redactSecrets(await readText(body, errorTextBytes), secrets)
  const said = `${source} answers ${status}${text === '' ? '' : `: ${text}`}`
  if (status === 401 || status === 403)
    return new FetchStop(`${said}. Check the key, what it may do, and that the region is that of the project.`)
  if (status === 429) return new FetchWait(sourceLimit, retryAfterOf(headers['retry-after'], nowMs))
  if (status === 408 || status >= 500)
    return new FetchWait(`the source is in trouble (${status})`, retryAfterOf(headers['retry-after'], nowMs))
  return new FetchStop(said)
}

/** The first bytes of a body, as text; the rest is not read. */
async function readText(body: IncomingMessage, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= bytesMax) break
    }
  } catch {
    // The status says enough.
  }
  return Buffer.concat(chunks).subarray(0, bytesMax).toString()
}

/** A whole body, for answers of a known small size. @throws BrokenAnswer beyond `bytesMax` or when it broke off. */
export async function readBody(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new BrokenAnswer(`the answer is larger than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
