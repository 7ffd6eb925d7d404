// What export APIs have in common: windows of time as parts, requests, pages, and the files of parts.

import { createWriteStream } from 'node:fs'
import { Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type JsonValue, parseJson } from '#core/json.ts'
import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { BrokenAnswer, convertToFetchFault, type FetchStop, type FetchWait } from '#importer/fetch/fetch-faults.ts'
import type { FetchEnvironment } from '#importer/fetch/fetch-secrets.ts'
import type { CallLimits, FetchSource, PartTools } from '#importer/fetch/fetch-source.ts'
import type { DayWindow, WindowUnit } from '#importer/fetch/fetch-windows.ts'
import {
  createStatusFault,
  type HttpAnswer,
  type HttpRequest,
  readBoundedBody,
  sendRequest,
} from '#importer/fetch/http-request.ts'
import { preparePartFile } from '#importer/fetch/part-file.ts'

/** An API that exports windows of time. */
export interface ExportApi extends Pick<FetchSource, 'limits' | 'advice' | 'callsPerPart' | 'notes'> {
  /** Addresses by region. */
  readonly hosts: Readonly<Record<string, string>>
  /** How long after the end of a day the API has all data, and in which zone it counts days, for `checkFetchRange`. */
  readonly ready: { readonly afterMs: number; readonly zone: 'utc' | 'any' }
  /** The smallest window, for an API that accepts windows of any length. Without it, each part is a day. */
  readonly unit?: WindowUnit
  /** The file name extension of a part, instead of `jsonl.gz`. */
  readonly ending?: string
  /** @param host ends in a slash. @throws FetchStop for a missing secret, ImportConfigError */
  open(config: FetchConfig, host: URL, secret: ReadSecret, env: FetchEnvironment): OpenApi
}

/** @param name the secret's environment variable. @param what describes the secret, for the FetchStop if it is missing. */
type ReadSecret = (name: string, what: string) => string

export interface OpenApi {
  /** The first part of file names, which have the form `NAME-FROM-to-TO`. */
  readonly name: string
  /** The user's own call limits, which replace the API's usual limits. */
  readonly limits?: CallLimits
  /** Like `fetchPart` of a FetchSource. */
  fetchWindow(window: DayWindow, tools: PartTools): Promise<boolean>
}

export interface ApiRequest extends Pick<HttpRequest, 'method' | 'url' | 'headers' | 'body'> {
  /** The product, as messages name it. */
  readonly source: string
  readonly secrets: readonly string[]
}

/** Sends a request as soon as the limits of the source allow it. @returns `fault` unless the status is 200. */
export async function requestApi(
  { source, secrets, ...request }: ApiRequest,
  { takeCall, signal, warn }: PartTools,
): Promise<HttpAnswer & { readonly fault: FetchStop | FetchWait | null }> {
  await takeCall()
  const answer = await sendRequest({ ...request, signal, warn })
  const fault = answer.status === 200 ? null : await createStatusFault(answer, source, secrets)
  return { ...answer, fault }
}

const pageBytesMax = 256 * 2 ** 20

export async function readPageText(answer: HttpAnswer): Promise<string> {
  return (await readBoundedBody(answer.body, pageBytesMax)).toString()
}

/** @throws BrokenAnswer for a text that is not JSON. */
export function parseJsonAnswer(text: string, complaint = 'the answer is not whole'): JsonValue {
  try {
    return parseJson(text)
  } catch {
    throw new BrokenAnswer(complaint)
  }
}

/**
 * The source cannot return this many rows at once. The error's `cause` is the error to throw if pages cannot be made
 * smaller.
 */
export class PageTooLarge extends Error {}

/**
 * Yields pages until a page is empty, since a source may return any page shorter than asked.
 * @param size.divisor divides the number of rows after a PageTooLarge.
 */
export async function* readPages<Row>(
  { first, min, divisor }: { readonly first: number; readonly min: number; readonly divisor: number },
  readPage: (rowsMax: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let rowsMax = first; ; )
    try {
      const page = await readPage(rowsMax)
      if (page.length === 0) return
      yield page
    } catch (error) {
      if (!(error instanceof PageTooLarge)) throw error
      if (rowsMax <= min) throw error.cause
      rowsMax = Math.max(min, Math.floor(rowsMax / divisor))
    }
}

// Writes the file of a part: the body of an answer as it is, or the lines of a paged export as gzip.

/** Writes the body as a gzip file, whether the source compressed it or not. @returns the bytes received. */
export async function downloadGzip({ headers, body }: HttpAnswer, tools: PartTools): Promise<number> {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding === 'gzip') return writeBodyToPart(body, tools)
  if (encoding !== 'identity') throw new BrokenAnswer(`the answer has an encoding that was not requested (${encoding})`)
  return writeBodyToPart(body, tools, createGzip())
}

/** @param pages lines without line breaks. @returns how many lines there are. */
export async function writePageLines(pages: AsyncIterable<readonly string[]>, tools: PartTools): Promise<number> {
  let lineCount = 0
  const encodePages = async function* () {
    for await (const lines of pages) {
      lineCount += lines.length
      if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\n`)
    }
  }
  await writeBodyToPart(Readable.from(encodePages()), tools, createGzip())
  return lineCount
}

/** Writes the body as converted by the streams `between`. @returns its size. @throws BrokenAnswer when it ends early. */
export async function writeBodyToPart(body: Readable, tools: PartTools, ...between: Transform[]): Promise<number> {
  await preparePartFile(tools.file)
  let bytes = 0
  const count = createTap(chunkBytes => {
    bytes += chunkBytes
    tools.received(chunkBytes)
  })
  const file = createWriteStream(tools.file.path, { flags: 'wx', mode: 0o600 })
  try {
    // Asks for disk space for the bytes that reach the file, which `between` may have compressed.
    await pipeline([body, count, ...between, createTap(tools.willWrite), file], { signal: tools.signal })
  } catch (cause) {
    throw convertToFetchFault(cause)
  }
  return bytes
}

/** Passes bytes on unchanged after `observe`, which may throw. */
function createTap(observe: (bytes: number) => void) {
  return async function* (bytes: AsyncIterable<Buffer>) {
    for await (const chunk of bytes) {
      observe(chunk.length)
      yield chunk
    }
  }
}
