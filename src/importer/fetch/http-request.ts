// Sends HTTP requests and returns response bodies as raw bytes. Node's own `fetch` is not used, because it decompresses
// gzip and accepts a truncated response as complete.

import { lookup as systemLookup } from 'node:dns'
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { BrokenAnswer, convertToFetchFault, FetchStop, FetchWait } from './fetch-faults.ts'
import { redactSecrets } from './fetch-secrets.ts'
import { parseRetryAfter, sourceLimit, wallClock } from './waiting.ts'

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
  /** The body; reading it fails if it ends before the announced length. */
  readonly body: IncomingMessage
  /** The kind of network that the responding address belongs to. */
  readonly reach: NetworkKind
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
      // If the connection is closed before any response, the size of the window need not be the cause.
      const isClosed = (cause as NodeJS.ErrnoException).code === 'ECONNRESET'
      reject(isClosed ? new FetchWait('the source closed the connection') : convertToFetchFault(cause))
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
  source: string,
  secrets: readonly string[],
): Promise<FetchStop | FetchWait> {
  const text = redactSecrets(await readStart(body, errorTextBytes), secrets)
  const said = `${source} answers ${status}${text === '' ? '' : `: ${text}`}`
  if (status === 401 || status === 403)
    return new FetchStop(`${said}. Check the key, what it may do, and that the region is that of the project.`)
  const retryAfterMs = parseRetryAfter(headers['retry-after'], wallClock.nowMs())
  if (status === 429) return new FetchWait(sourceLimit, retryAfterMs)
  if (status === 408 || status >= 500) return new FetchWait(`the source is in trouble (${status})`, retryAfterMs)
  return new FetchStop(said)
}

/** @returns the first bytes of a body as text; fewer when it ends early, since the status suffices. */
async function readStart(body: AsyncIterable<Buffer>, bytesMax: number): Promise<string> {
  let start = Buffer.alloc(0)
  try {
    for await (const chunk of body) {
      start = Buffer.concat([start, chunk])
      if (start.length >= bytesMax) break
    }
  } catch {
    // The start of the body is only for the message, so whatever arrived is shown; the status alone decides what happens
    // next.
  }
  return start.toString('utf8', 0, bytesMax)
}

/** Reads a whole body into memory. @throws BrokenAnswer beyond `bytesMax`. */
export async function readBoundedBody(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new BrokenAnswer(`the answer is larger than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

// Where a redirect may lead: a server must not make the importer send requests that only this machine can send.

/** The kind of network that an address belongs to. */
export type NetworkKind = 'public' | 'private' | 'loopback' | 'link-local'

const networks: Readonly<Record<Exclude<NetworkKind, 'public'>, string>> = {
  // fd00:ec2:: serves AWS's instance metadata and credentials, like 169.254.169.254.
  'link-local': '169.254.0.0/16 fe80::/10 fd00:ec2::/32',
  // `::/96` is `::`, `::1` and the deprecated IPv4-compatible addresses.
  loopback: '127.0.0.0/8 0.0.0.0/8 ::/96',
  private: '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10',
}

const lists = Object.entries(networks).map(([reach, subnets]) => {
  const list = new BlockList()
  for (const [network, bits] of subnets.split(' ').map(subnet => subnet.split('/') as [string, string])) {
    if (isIP(network) === 6) list.addSubnet(network, Number(bits), 'ipv6')
    else {
      list.addSubnet(network, Number(bits))
      // A NAT64 gateway maps all of IPv4 to this prefix.
      list.addSubnet(`64:ff9b::${network}`, 96 + Number(bits), 'ipv6')
    }
  }
  return { reach: reach as NetworkKind, list }
})

/** An IPv4 address within IPv6 counts as that IPv4 address. */
function classifyAddress(address: string): NetworkKind {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  return lists.find(({ list }) => list.check(address, family))?.reach ?? 'public'
}

/** The URL of a request, and the resolver for its host name. */
interface Hop {
  readonly url: URL
  readonly lookup: LookupFunction
}

export interface RedirectContext {
  /** The URL that redirects. */
  readonly from: URL
  /** The kind of network of the address that responded for `from`. */
  readonly reach: NetworkKind
  readonly lookup: LookupFunction
  /** Receives a warning about a redirect to a private address. The redirect is followed, since it may be intended. */
  readonly warn: (line: string) => void
}

/**
 * @returns the hop that a redirect leads to. Its `lookup` checks the addresses that the connection uses: the owner of a
 *   name may return other addresses when it is resolved again (DNS rebinding).
 * @throws FetchStop for a redirect that is not followed.
 */
export function resolveRedirect(location: string, redirecting: RedirectContext): Hop {
  const { from, lookup } = redirecting
  const url = URL.parse(location, from.href)
  if (url === null) throw new FetchStop(`${from.host} redirects to something that is no address.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address of ${url.protocol}, which is not followed.`)
  if (from.protocol === 'https:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address without encryption, which is not followed.`)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const refusal = isIP(host) === 0 ? null : findRedirectRefusal(host, url, redirecting)
  if (refusal !== null) throw refusal
  return {
    url,
    lookup: (name, options, callback) =>
      lookup(name, options, (error, found, family) => {
        const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address)
        const refusals = addresses
          .map(address => findRedirectRefusal(address, url, redirecting))
          .filter(each => each !== null)
        callback(refusals[0] ?? error, found, family)
      }),
  }
}

/** @returns why a redirect to the address is refused; null if it is allowed. */
function findRedirectRefusal(
  address: string,
  to: URL,
  { from, reach: fromReach, warn }: RedirectContext,
): FetchStop | null {
  const reach = classifyAddress(address)
  // A host may redirect to itself as long as its address stays in the same kind of network (`NetworkKind`).
  const isSame = from.hostname === to.hostname && fromReach === reach
  if (reach === 'link-local' || (reach === 'loopback' && !isSame))
    return new FetchStop(
      `${from.host} redirects to ${to.host}, an address of this machine or its own network link, which is not followed.`,
    )
  if (reach === 'private' && !isSame)
    warn(`${from.host} redirects to ${to.host} (${address}), in a private network that only some machines can reach.`)
  return null
}
