// Files at the URLs of a list, one per line, such as exports that a tool offers for download. Signatures in a URL are
// secrets, so its query is neither stored nor shown.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { ObjectBytes, ObjectSource, SourceObject } from '#ports/object-source.ts'
import { PortError } from '#ports/port-error.ts'
import { FetchStop } from './fetch-faults.ts'
import { createStatusFault, type HttpAnswer, sendRequest } from './http-request.ts'

const port = 'object-source'
/** Parameters that change each time the same URL is signed. */
const signing =
  /^(x-amz-.*|x-goog-.*|awsaccesskeyid|signature|sig|expires|se|sp|sv|sr|st|spr|skoid|sktid|ske|sks|skt|skv|token|access_token|policy|key-pair-id|googleaccessid)$/i

/**
 * Creates an ObjectSource for a list of URLs. It throws FetchStop and FetchWait in addition to PortError. @param path the
 * list; the files keep the order of its lines.
 * @param authorization the header sent to every URL; null for none.
 * @throws FetchStop for a list that cannot be read, or a line that is not a URL.
 */
export function createHttpListSource(path: string, authorization: string | null): ObjectSource {
  const addresses = new Map(readAddresses(path).map(url => [toUrlKey(url), url]))
  const requestUrl = async (method: 'GET' | 'HEAD', url: URL, signal: AbortSignal, range = {}) => {
    const headers = { ...(authorization !== null && { authorization }), 'accept-encoding': 'identity', ...range }
    const notes: string[] = []
    const answer = await sendRequest({ method, url, headers, signal, warn: line => notes.push(line) })
    return { ...answer, notes }
  }
  const createRefusal = async (answer: HttpAnswer, url: URL) => {
    const secrets = [authorization ?? '', ...url.searchParams.values()]
    const fault = await createStatusFault(answer, formatAddress(url), secrets)
    if (answer.status !== 404 && answer.status !== 410) return fault
    return new FetchStop(`${fault.message}. Remove its line from ${path} to fetch only the other addresses.`)
  }
  return {
    async *list(signal) {
      for (const [key, url] of addresses) {
        const answer = await requestUrl('HEAD', url, signal)
        answer.body.resume()
        // Lists the URL even if HEAD failed, since some servers support only GET, and URLs are often signed only for GET.
        if (shouldDeferToGet(answer.status)) yield { key, bytes: null, version: null }
        else if (answer.status === 200) yield { key, ...readSizeAndVersion(answer) }
        else throw await createRefusal(answer, url)
      }
    },
    async open({ key, version, bytes }: SourceObject, from: number, signal: AbortSignal): Promise<ObjectBytes> {
      const url = addresses.get(key)
      if (url === undefined) throw new FetchStop(`${key} is not in ${path} any more.`)
      if (bytes !== null && bytes > 0 && from >= bytes) return { startsAt: from, bytes: Readable.from([]) }
      const answer = await requestUrl('GET', url, signal, from === 0 ? {} : { range: `bytes=${from}-` })
      if (answer.status !== 200 && answer.status !== 206) throw await createRefusal(answer, url)
      if (version !== null && readSizeAndVersion(answer).version !== version) {
        answer.body.destroy()
        throw new PortError(port, 'conflict', new Error(`${formatAddress(url)} has changed`))
      }
      return { startsAt: answer.status === 206 ? from : 0, bytes: streamBody(answer, url), notes: answer.notes }
    },
    close: () => undefined,
  }
}

function readAddresses(path: string): URL[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new FetchStop(`The list ${path} cannot be read (${(cause as NodeJS.ErrnoException).code}).`)
  }
  const lines = text.split(/\r?\n/).map((line, index) => ({ line: line.trim(), number: index + 1 }))
  const urls = lines
    .filter(({ line }) => line !== '' && !line.startsWith('#'))
    .map(({ line, number }) => {
      const url = URL.parse(line)
      if (url === null || !/^https?:$/.test(url.protocol))
        throw new FetchStop(`Line ${number} of ${path} is not an http or https URL.`)
      if (url.username !== '' || url.password !== '')
        throw new FetchStop(
          `Line ${number} of ${path} has a password in it. Put it into IMPORT_HTTP_AUTHORIZATION instead.`,
        )
      return url
    })
  if (urls.length === 0) throw new FetchStop(`The list ${path} has no addresses.`)
  return urls
}

/**
 * A key made of host, path and a hash of the parameters except the signature's, so that a URL that is signed again keeps
 * its key.
 */
function toUrlKey(url: URL): string {
  const parameters = [...url.searchParams].filter(([name]) => !signing.test(name))
  const path = `${url.host}${url.pathname === '/' ? '/index' : url.pathname}`
  if (parameters.length === 0) return path
  const hash = createHash('sha256').update(JSON.stringify(parameters)).digest('hex').slice(0, 12)
  const at = path.lastIndexOf('/') + 1
  return `${path.slice(0, at)}${hash}-${path.slice(at)}`
}

function formatAddress(url: URL): string {
  return `${url.origin}${url.pathname}`
}

/**
 * Whether this status of a HEAD answer leaves the decision to the later GET. A wrong key or a busy server is reported now.
 */
function shouldDeferToGet(status: number): boolean {
  return (status >= 400 && status < 500 && ![401, 408, 429].includes(status)) || status === 501
}

/** Ignores a weak ETag, which does not identify bytes. */
function readSizeAndVersion({ headers, status }: HttpAnswer): Pick<SourceObject, 'bytes' | 'version'> {
  const length = headers['content-length']
  const total = status === 206 ? /\/(\d+)$/.exec(headers['content-range'] ?? '')?.[1] : length
  const bytes = total === undefined ? null : Number(total)
  const { etag, 'last-modified': modified } = headers
  if (etag !== undefined && !etag.startsWith('W/')) return { bytes, version: etag }
  return { bytes, version: modified === undefined || bytes === null ? null : `${modified}, ${bytes} bytes` }
}

/** @throws PortError when the body ends early. */
async function* streamBody({ body }: HttpAnswer, url: URL): AsyncIterable<Uint8Array> {
  try {
    yield* body as AsyncIterable<Buffer>
  } catch {
    throw new PortError(port, 'unavailable', new Error(`${formatAddress(url)} broke off`))
  }
}
