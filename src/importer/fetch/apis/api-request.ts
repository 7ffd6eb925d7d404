// What export APIs have in common: windows of time as parts, requests, and pages.

import { type JsonValue, parseJson } from '#core/json.ts'
import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { BrokenAnswer, type FetchStop, type FetchWait } from '#importer/fetch/fetch-faults.ts'
import type { Environment } from '#importer/fetch/fetch-secrets.ts'
import type { CallLimits, FetchSource, PartTools } from '#importer/fetch/fetch-source.ts'
import type { DayWindow, WindowUnit } from '#importer/fetch/fetch-windows.ts'
import {
  createStatusFault,
  type HttpAnswer,
  type HttpRequest,
  readBody,
  sendRequest,
} from '#importer/fetch/http-request.ts'

/** An API that exports windows of time. */
export interface ExportApi extends Pick<FetchSource, 'limits' | 'advice' | 'callsPerPart' | 'notes'> {
  /** Addresses by region. */
  readonly hosts: Readonly<Record<string, string>>
  /** How long after the end of a day it has all data, and in which zone it counts days: as `checkRange` takes them. */
  readonly ready: { readonly afterMs: number; readonly zone: 'utc' | 'any' }
  /** The smallest window of an API that takes any. Without it, each part is a day. */
  readonly unit?: WindowUnit
  /** The ending of its files, instead of `jsonl.gz`. */
  readonly ending?: string
  /** @param host ends in a slash. @throws FetchStop for a missing secret, ImportConfigError */
  open(config: FetchConfig, host: URL, secret: ReadSecret, env: Environment): OpenApi
}

/** @param name of its environment variable. @param what it is, for the message of the FetchStop when it is missing. */
type ReadSecret = (name: string, what: string) => string

export interface OpenApi {
  /** Its files are named `NAME-FROM-to-TO`. */
  readonly name: string
  /** Instead of those of the API. */
  readonly limits?: CallLimits
  /** As `fetchPart` of a FetchSource. */
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
  return (await readBody(answer.body, pageBytesMax)).toString()
}

/** @throws BrokenAnswer for a text that is no JSON. */
export function parseAnswer(text: string, complaint = 'the answer is not whole'): JsonValue {
  try {
    return parseJson(text)
  } catch {
    throw new BrokenAnswer(complaint)
  }
}

/** The source cannot return as many rows at once. Its `cause` is thrown if a page cannot have fewer. */
export class PageTooLarge extends Error {}

/**
 * Yields pages up to an empty one, since a source may return any page shorter than asked.
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
