// Fills a page of a list to its limit. Stores return slices of limited size, so that one read does not delay others; but
// clients that page by `offset` take a page with fewer rows than the limit for the last page. So slices are read until the
// page is full, and a page that would be too large is refused with an error that names a limit that fits. Lists paged by
// cursor end such a page early, and `next` leads to the rest.

import type { FastifyRequest } from 'fastify'
import { err, ok, type Result } from '#core/result.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, createInvalidInputError, encodeEachInSteps, listAnswer, refusal } from './answers.ts'
import { readBaseUrl } from './base-url.ts'

/** The default number of rows per read. */
const usualSliceRows = 1_000
/** Bounds the text of one page, which only its first row may exceed. */
const pageCharsMax = 8 * 1024 * 1024

interface Slice<T, P> {
  readonly rows: readonly T[]
  /** Where the next slice begins; null after the last row. */
  readonly next: P | null
  /** Ends the page although it is not full. Only for lists whose clients expect short pages. */
  readonly endsPage?: boolean
}

/** Reads up to `limit` rows from a place on: at least one row if any is left, unless a search takes too long. */
type ReadSlice<T, P> = (from: P, limit: number) => Promise<Result<Slice<T, P>, WireError>>

/** The JSON texts of some rows, in their order. */
type EncodeRows<T> = (rows: readonly T[]) => Promise<readonly string[]> | readonly string[]

interface PageBounds<P> {
  readonly start: P
  readonly limit: number
  /** If true, rows with too much text shorten the page; if false, they are an error. */
  readonly mayBeShort: boolean
  readonly signal: AbortSignal
  readonly sliceRows?: number
}

/**
 * Returns exactly `limit` rows, all that are left, or all that fit. Returns an error when a read fails or when rows
 * have too much text.
 */
async function fillPage<T, P>(
  { start, limit, mayBeShort, signal, sliceRows = usualSliceRows }: PageBounds<P>,
  read: ReadSlice<T, P>,
  encode: EncodeRows<T>,
): Promise<Result<{ readonly texts: readonly string[]; readonly next: P | null }, WireError>> {
  const texts: string[] = []
  let charCount = 0
  let rowsMax = sliceRows
  for (let from = start; ; ) {
    const slice = await read(from, Math.min(limit - texts.length, rowsMax))
    if (!slice.ok) return slice
    const { rows, next, endsPage } = slice.value
    const encoded = await encode(rows)
    const fitting = countFitting(encoded, pageCharsMax - charCount, texts.length === 0 ? 1 : 0)
    if (fitting < encoded.length) {
      if (!mayBeShort) return err(tooLargeError(texts.length + fitting))
      if (texts.length > 0) return ok({ texts, next: from })
      // Reads the slice again with only the rows that fit, since only then does `next` point to the row after them.
      rowsMax = fitting
      continue
    }
    texts.push(...encoded)
    charCount += sumChars(encoded)
    const isFull = texts.length >= limit || rowsMax < sliceRows
    if (next === null || isFull || endsPage === true || signal.aborted) return ok({ texts, next })
    from = next
  }
}

/** Counts how many of the first texts together fit into `charsMax` characters; returns at least `countMin`. */
function countFitting(texts: readonly string[], charsMax: number, countMin: number): number {
  let charCount = 0
  const index = texts.findIndex((text, index) => {
    charCount += text.length
    return charCount > charsMax && index >= countMin
  })
  return index === -1 ? texts.length : index
}

function sumChars(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

function tooLargeError(fittingCount: number): WireError {
  return createInvalidInputError(
    'limit',
    `The page exceeds ${pageCharsMax / 2 ** 20} MiB: request fewer rows at a time. limit=${fittingCount} fits.`,
  )
}

/** The part of a call that a page needs. */
export interface PageCall {
  readonly request: FastifyRequest
  readonly signal: AbortSignal
}

/** Encodes rows one at a time, so that other work may run in between. */
export function encodeRows<T>(encode: (row: T) => string): EncodeRows<T> {
  return rows => runInSlices(encodeEachInSteps(rows, encode))
}

/** Like `encodeRows`, for rows that are encoded as objects. */
export function encodeObjects<T>(encode: (row: T) => object): EncodeRows<T> {
  return encodeRows(row => JSON.stringify(encode(row)))
}

/** Like `encodeObjects`, for rows whose encoding first looks up data for a whole slice at once. */
export function encodeRowsInBulk<T>(encode: (rows: readonly T[]) => Promise<readonly object[]>): EncodeRows<T> {
  return async rows => runInSlices(encodeEachInSteps(await encode(rows), row => JSON.stringify(row)))
}

/**
 * `{"count","next","previous","results"}` of a list that is read by offset. If `mayBeShort`, rows with too much text
 * shorten the page, and `next` has the offset of the row after it; by default they are an error.
 * @param sliceRows rows per read, given if each read costs as much as reading the whole page.
 */
export async function answerCountedList<T>(
  { request, signal }: PageCall,
  { mayBeShort = false, ...page }: PageRequest & { readonly mayBeShort?: boolean },
  read: (slice: PageRequest) => Promise<{ readonly count: number; readonly results: readonly T[] }>,
  encode: EncodeRows<T>,
  sliceRows?: number,
): Promise<Answer> {
  let count = 0
  const filled = await fillPage<T, number>(
    { start: page.offset, limit: page.limit, mayBeShort, signal, ...(sliceRows && { sliceRows }) },
    async (offset, limit) => {
      const slice = await read({ limit, offset })
      count = slice.count
      return ok({
        rows: slice.results,
        next: computeNextOffset(offset, slice.results, offset + slice.results.length < count),
      })
    },
    encode,
  )
  if (!filled.ok) return refusal(filled.error)
  const { texts } = filled.value
  return listAnswer(encodeCountAndPageLinks(request, page, count, texts.length), texts)
}

/**
 * `[…]` with all rows, as PostHog answers some lists; an error if the rows exceed a page.
 * @param sliceRows how many rows are looked up and encoded together.
 */
export async function answerWholeList<T>(
  rows: readonly T[],
  encode: EncodeRows<T>,
  { signal, sliceRows, tooLarge }: { signal: AbortSignal; sliceRows: number; tooLarge: (sizeMax: string) => WireError },
): Promise<Answer> {
  const filled = await fillPage<T, number>(
    { start: 0, limit: rows.length, mayBeShort: false, signal, sliceRows },
    async from => {
      const slice = rows.slice(from, from + sliceRows)
      return ok({ rows: slice, next: computeNextOffset(from, slice, from + slice.length < rows.length) })
    },
    encode,
  )
  return filled.ok
    ? { status: 200, json: `[${filled.value.texts.join(',')}]` }
    : refusal(tooLarge(`${pageCharsMax / 2 ** 20} MiB`))
}

/** `{"next","previous","results"}` of a list that is read by offset and not counted. */
export async function answerUncountedList<T>(
  { request, signal }: PageCall,
  page: PageRequest,
  read: (slice: PageRequest) => Promise<{ readonly hasMore: boolean; readonly results: readonly T[] }>,
  encode: EncodeRows<T>,
): Promise<Answer> {
  const filled = await fillPage<T, number>(
    { start: page.offset, limit: page.limit, mayBeShort: false, signal },
    async (offset, limit) => {
      const { results, hasMore } = await read({ limit, offset })
      return ok({ rows: results, next: computeNextOffset(offset, results, hasMore) })
    },
    encode,
  )
  if (!filled.ok) return refusal(filled.error)
  const { texts, next } = filled.value
  return listAnswer(encodeUncountedPageLinks(request, page, next !== null, texts.length), texts)
}

/**
 * Returns the offset of the next page; null after the last page, and when nothing was read because the list has shrunk.
 */
function computeNextOffset(offset: number, results: readonly unknown[], hasMore: boolean): number | null {
  return hasMore && results.length > 0 ? offset + results.length : null
}

interface CursorPage<C> {
  readonly cursor: C | undefined
  readonly limit: number
  /** Query parameters whose value in `next` replaces the value in the request. */
  readonly pinned?: Readonly<Record<string, string>>
  /** Whether rows with too much text shorten the page; default true. */
  readonly mayBeShort?: boolean
}

/**
 * A list that is paged by cursor; `next` is the request's URL with the cursor of the following rows.
 * @param head further fields before `results`, after `next`.
 */
export async function answerCursorList<T, C>(
  { request, signal }: PageCall,
  { cursor, limit, pinned = {}, mayBeShort = true }: CursorPage<C>,
  read: ReadSlice<T, C | undefined>,
  encode: { readonly rows: EncodeRows<T>; readonly cursor: (cursor: C) => string; readonly head?: object },
): Promise<Answer> {
  const filled = await fillPage<T, C | undefined>({ start: cursor, limit, mayBeShort, signal }, read, encode.rows)
  if (!filled.ok) return refusal(filled.error)
  const { texts, next } = filled.value
  const address = next == null ? null : buildUrlWithParams(request, { ...pinned, cursor: encode.cursor(next) })
  return listAnswer({ next: address, ...encode.head }, texts)
}

export interface PageRequest {
  readonly limit: number
  readonly offset: number
}

/** `{"count","next","previous"}` of a page of a list with `count` items. */
export function encodeCountAndPageLinks(
  request: FastifyRequest,
  page: PageRequest,
  count: number,
  resultCount: number,
) {
  const nextOffset = page.offset + resultCount
  const hasMore = nextOffset < count && resultCount > 0
  return { count, ...buildNeighbourAddresses(request, page, hasMore ? nextOffset : null) }
}

/** `{"next","previous"}` for a list that is not counted. */
export function encodeUncountedPageLinks(
  request: FastifyRequest,
  page: PageRequest,
  hasMore: boolean,
  resultCount: number,
) {
  return buildNeighbourAddresses(request, page, hasMore ? page.offset + resultCount : null)
}

/** The request's own address with some parameters changed; null removes one. */
export function buildUrlWithParams(request: FastifyRequest, changes: Readonly<Record<string, string | null>>): string {
  const [path, query = ''] = splitOnce(request.url, '?')
  const params = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) params.delete(name)
    else params.set(name, value)
  }
  const text = params.toString()
  return `${readBaseUrl(request)}${path}${text === '' ? '' : `?${text}`}`
}

/** @param nextOffset null when this page is the last. */
function buildNeighbourAddresses(request: FastifyRequest, { limit, offset }: PageRequest, nextOffset: number | null) {
  const before = Math.max(0, offset - limit)
  // The other pages of a list requested by `page` are addressed by offset.
  const buildPageAddress = (from: number) =>
    buildUrlWithParams(request, { page: null, limit: String(limit), offset: from === 0 ? null : String(from) })
  return {
    next: nextOffset === null ? null : buildPageAddress(nextOffset),
    previous: offset === 0 ? null : buildPageAddress(before),
  }
}

function splitOnce(text: string, separator: string): [string, string?] {
  const index = text.indexOf(separator)
  return index === -1 ? [text] : [text.slice(0, index), text.slice(index + 1)]
}
