// Requests to export APIs, and how those that answer in pages are read day by day.

import { type JsonValue, parseJson } from '#core/json.ts'
import { BrokenAnswer, type FetchStop, type FetchWait } from '#importer/fetch/fetch-faults.ts'
import type { FetchPart, FetchSource, PartTools } from '#importer/fetch/fetch-source.ts'
import { type DayWindow, divideIntoWindows } from '#importer/fetch/fetch-windows.ts'
import {
  createStatusFault,
  type HttpAnswer,
  type HttpRequest,
  readBody,
  sendRequest,
} from '#importer/fetch/http-request.ts'

export interface ApiRequest extends Pick<HttpRequest, 'method' | 'url' | 'headers' | 'body'> {
  /** The product, as messages name it. */
  readonly source: string
  readonly secrets: readonly string[]
}

/** Sends a request as soon as the limits of the source allow it. @returns `fault` unless the status is 200. */
export async function requestApi(
  { source, secrets, ...request }: ApiRequest,
  { takeCall, signal, warn, nowMs }: PartTools,
): Promise<HttpAnswer & { readonly fault: FetchStop | FetchWait | null }> {
  await takeCall()
  const answer = await sendRequest({ ...request, signal, warn })
  const fault = answer.status === 200 ? null : await createStatusFault(answer, { source, secrets, nowMs: nowMs() })
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

/** A source that returns a day in pages: each day is a part, named `NAME-DAY.jsonl.gz`, with `day` in its `asks`. */
export function createDailySource({
  name,
  range,
  ...source
}: Omit<FetchSource, 'listParts' | 'splitPart'> & { readonly name: string; readonly range: DayWindow }): FetchSource {
  const toFetchPart = ({ from }: DayWindow): FetchPart => ({
    ...{ id: `${name}-${from}.jsonl.gz`, asks: { day: from }, bytes: null },
  })
  return { ...source, listParts: () => divideIntoWindows(range, 1).map(toFetchPart), splitPart: () => null }
}

/** The source cannot return as many rows at once. */
export class PageTooLarge extends Error {
  /** Thrown in its place if a page cannot have fewer rows. */
  readonly fault: Error

  constructor(fault: Error) {
    super(fault.message)
    this.fault = fault
  }
}

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
      if (rowsMax <= min) throw error.fault
      rowsMax = Math.max(min, Math.floor(rowsMax / divisor))
    }
}
