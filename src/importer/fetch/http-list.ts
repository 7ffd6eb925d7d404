// Files at the URLs of a list, one per line, such as exports that a tool offers for download. Signatures in a URL are
// secrets, so its query is neither stored nor shown.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type ObjectBytes, type ObjectSource, ObjectSourceRefusal, type SourceObject } from '#ports/object-source.ts'
import { PortError } from '#ports/port-error.ts'
import { FetchStop, FetchWait } from './fetch-faults.ts'
import { createStatusFault, type HttpAnswer, sendRequest } from './http-request.ts'

export interface HttpList {
  /** Path of the list. Its files keep the order of its lines. */
  readonly path: string
  /** The header sent to every URL; null for none. */
  readonly authorization: string | null
}

const port = 'object-source'
/** Parameters that change each time the same URL is signed. */
const signing =
  /^(x-amz-.*|x-goog-.*|awsaccesskeyid|signature|sig|expires|se|sp|sv|sr|st|spr|skoid|sktid|ske|sks|skt|skv|token|access_token|policy|key-pair-id|googleaccessid)$/i

/** @throws FetchStop for a list that cannot be read, or a line that is no URL. */
export function createHttpListSource({ path, authorization }: HttpList, nowMs: () => number): ObjectSource {
  const addresses = new Map(readAddresses(path).map(url => [urlKey(url), url]))
  const headers = authorization === null ? {} : { authorization }
  const secrets = authorization === null ? [] : [authorization]
  const ask = async (url: URL, method: 'GET' | 'HEAD', more: Record<string, string>, signal: AbortSignal) => {
    const notes: string[] = []
    const warn = (line: string) => notes.push(line)
    const answer = await convertFetchStop(sendRequest({ method, url, headers: { ...headers, ...more }, signal, warn }))
    const refusalOptions = { url, list: path, secrets: [...secrets, ...url.searchParams.values()], nowMs: nowMs() }
    return { answer, notes, refuse: () => createRefusal(answer, refusalOptions) }
  }
  return {
    async *list(signal) {
      for (const [key, url] of addresses) {
        const { answer, refuse } = await ask(url, 'HEAD', { 'accept-encoding': 'identity' }, signal)
        answer.body.resume()
        // Some servers support only GET, and URLs are often signed for GET alone.
        if (isDecidedByGet(answer.status)) yield { key, bytes: null, version: null }
        else if (answer.status === 200) yield { key, ...readSizeAndVersion(answer) }
        else throw await refuse()
      }
    },
    async open({ key, version, bytes }: SourceObject, from: number, signal: AbortSignal): Promise<ObjectBytes> {
      const url = addresses.get(key)
      if (url === undefined) throw new ObjectSourceRefusal(`${key} is not in ${path} any more.`)
      if (bytes !== null && bytes > 0 && from >= bytes) return { startsAt: from, bytes: emptyStream() }
      const range = from === 0 ? {} : { range: `bytes=${from}-` }
      const { answer, notes, refuse } = await ask(url, 'GET', { 'accept-encoding': 'identity', ...range }, signal)
      if (answer.status !== 200 && answer.status !== 206) throw await refuse()
      if (version !== null && readSizeAndVersion(answer).version !== version) {
        answer.body.destroy()
        throw new PortError(port, 'conflict', new Error(`${formatAddress(url)} has changed`))
      }
      return { startsAt: answer.status === 206 ? from : 0, bytes: streamBody(answer, url), notes }
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

/** Host, path and a hash of the parameters outside the signature, so that signing a URL again keeps its key. */
function urlKey(url: URL): string {
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

/** Whether to leave the verdict to the later GET. A wrong key and a busy server fail now. */
function isDecidedByGet(status: number): boolean {
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
async function* streamBody({ body, headers }: HttpAnswer, url: URL): AsyncIterable<Uint8Array> {
  const announced = headers['content-length']
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      yield chunk
    }
  } catch {
    throw new PortError(port, 'unavailable', new Error(`${formatAddress(url)} broke off`))
  }
  if (announced !== undefined && bytes < Number(announced))
    throw new PortError(port, 'unavailable', new Error(`${formatAddress(url)} broke off`))
}

async function* emptyStream(): AsyncIterable<Uint8Array> {}

interface RefusalOptions {
  readonly url: URL
  readonly list: string
  readonly secrets: readonly string[]
  readonly nowMs: number
}

async function createRefusal(answer: HttpAnswer, { url, list, secrets, nowMs }: RefusalOptions): Promise<Error> {
  const fault = await createStatusFault(answer, { source: formatAddress(url), secrets, nowMs })
  if (fault instanceof FetchWait) return fault
  const isGone = answer.status === 404 || answer.status === 410
  const advice = isGone ? `. Remove its line from ${list} to fetch only the other addresses.` : ''
  return new ObjectSourceRefusal(`${fault.message}${advice}`)
}

async function convertFetchStop<T>(answered: Promise<T>): Promise<T> {
  try {
    return await answered
  } catch (cause) {
    throw cause instanceof FetchStop ? new ObjectSourceRefusal(cause.message) : cause
  }
}
