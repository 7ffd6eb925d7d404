// Sends HTTP requests and returns response bodies as raw bytes. Node's own `fetch` is not used, because it decompresses
// gzip and accepts a truncated one as complete.

import { lookup as systemLookup } from 'node:dns'
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { LookupFunction } from 'node:net'
import { sourceLimit } from './describe-wait.ts'
import { asFetchFault, BrokenAnswer, FetchStop, FetchWait } from './fetch-faults.ts'
import { redactSecrets } from './fetch-secrets.ts'
import { classifyAddress, type Hop, type Reach, resolveRedirect } from './redirects.ts'
import { parseRetryAfter } from './retry-wait.ts'

export interface HttpRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
  /** Longest time without a byte. Default: 10 minutes. */
  readonly idleMs?: number
  /** Resolves host names. Default: the system's resolver. */
  readonly lookup?: LookupFunction
  /** Receives warnings about redirects that are followed but that the user should know about. */
  readonly warn: (line: string) => void
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Fails when it ends before the announced length. */
  readonly body: IncomingMessage
  /** The kind of network that the responding address belongs to. */
  readonly reach: Reach
}

/** Sources take minutes to send the first byte of a large window. */
const patientMs = 10 * 60_000
const redirectsMax = 5
const errorTextBytes = 4_096

/**
 * Follows redirects of GET and HEAD, without the authorization header to another origin.
 * @throws FetchWait, FetchStop, BrokenAnswer
 */
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
    const next = resolveRedirect(location, { from: hop.url, reach: answer.reach, lookup, warn })
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
    // A reused connection would skip the lookup, which checks the address of a redirect.
    const outgoing = send(url, isRedirected ? { ...options, agent: false } : options)
    // BrokenAnswer and not FetchWait: the window may be too large, so repeated timeouts must split it.
    outgoing.setTimeout(idleMs, () => outgoing.destroy(new BrokenAnswer('the source does not answer in time')))
    outgoing.on('error', cause => {
      // A connection closed before any response says nothing about the window.
      const isClosed = (cause as NodeJS.ErrnoException).code === 'ECONNRESET'
      reject(isClosed ? new FetchWait('the source closed the connection') : asFetchFault(cause))
    })
    outgoing.on('response', answer => {
      const reach = classifyAddress(answer.socket.remoteAddress ?? '')
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: answer, reach })
    })
    outgoing.end(body)
  })
}

/**
 * Converts an unexpected status into a fault, with the start of the source's own text.
 * @param secrets masked in that text.
 */
export async function createStatusFault(
  { status, headers, body }: HttpAnswer,
  { source, secrets, nowMs }: { readonly source: string; readonly secrets: readonly string[]; readonly nowMs: number },
): Promise<FetchStop | FetchWait> {
  const text = redactSecrets(await readText(body, errorTextBytes), secrets)
  const said = `${source} answers ${status}${text === '' ? '' : `: ${text}`}`
  if (status === 401 || status === 403)
    return new FetchStop(`${said}. Check the key, what it may do, and that the region is that of the project.`)
  if (status === 429) return new FetchWait(sourceLimit, parseRetryAfter(headers['retry-after'], nowMs))
  if (status === 408 || status >= 500)
    return new FetchWait(`the source is in trouble (${status})`, parseRetryAfter(headers['retry-after'], nowMs))
  return new FetchStop(said)
}

/** Reads at most `bytesMax` of a body, as text. */
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
    // The status suffices without the text.
  }
  return Buffer.concat(chunks).subarray(0, bytesMax).toString()
}

/** Reads a whole body into memory. @throws BrokenAnswer beyond `bytesMax`. */
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
