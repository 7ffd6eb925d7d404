// A list whose rows must be searched for, so that most rows that are read may not match. A page is filled to its limit,
// unless the caller follows `next`: then pages before the last page may be short or empty.

import { err, ok, type Result } from '#core/result.ts'
import { TooManyScansError } from '#services/scans/subject-scans.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, answerFromScan, createInvalidInputError } from './answers.ts'
import { answerCursorList, type PageCall } from './list-answers.ts'
import { type QueryParam, wholeNumberParam } from './query-params.ts'

/** The longest search for the rows of a page. */
const searchMsMax = 10_000
/** The longest that an answer may take, including its wait for other searches. */
const answerMsMax = 30_000

/** The query parameter `cursor` of a searched list. */
export function searchCursorParam(): QueryParam<number | undefined> {
  return wholeNumberParam({
    description:
      'Cursor from `next` of the previous page; 0 for the first page. With a cursor, pages may be short: follow `next`.',
    minimum: 0,
  })
}

export interface SearchedSlice {
  /** JSON texts. */
  readonly results: readonly string[]
  /** Where the search continues; null when nothing is left. */
  readonly nextAfter: number | null
  /** How long the search itself took, without the time that it waited for other searches. */
  readonly lookedMs: number
}

export interface SearchedList {
  /** The place after which to start; undefined when the caller sent no cursor. */
  readonly cursor: number | undefined
  readonly limit: number
  /** The rows' name in the plural, for messages. */
  readonly what: string
  readonly monotonicNowMs: () => number
}

/** @param search finds rows after a place, for a limited time. 0 is the place before the first row. */
export function answerSearchedList(
  call: PageCall,
  { cursor, limit, what, monotonicNowMs }: SearchedList,
  search: (after: number, limit: number) => Promise<Result<SearchedSlice, WireError>>,
): Promise<Answer> {
  const startMs = monotonicNowMs()
  let found = 0
  let lookedMs = 0
  return answerFromScan(() =>
    answerCursorList<string, number>(
      call,
      { cursor, limit, mayBeShort: cursor !== undefined },
      async (after = 0, sliceLimit) => {
        const slice = await search(after, sliceLimit).catch((error: unknown) => {
          // If too many searches run, a caller that follows `next` gets the rows found so far.
          const mayEnd = error instanceof TooManyScansError && cursor !== undefined && after !== cursor
          if (!mayEnd) throw error
          return null
        })
        if (slice === null) return ok({ rows: [], next: after, endsPage: true })
        if (!slice.ok) return slice
        const { results, nextAfter } = slice.value
        found += results.length
        lookedMs += slice.value.lookedMs
        const isOpen = nextAfter !== null && found < limit
        const tookMs = monotonicNowMs() - startMs
        if (isOpen && cursor === undefined) {
          if (lookedMs >= searchMsMax) return err(incompleteSearchError(what, found))
          if (tookMs >= answerMsMax) throw new TooManyScansError('other searches used up the time of this search')
        }
        return ok({ rows: results, next: nextAfter, endsPage: isOpen && tookMs >= searchMsMax && cursor !== undefined })
      },
      { rows: texts => texts, cursor: String, head: { previous: null } },
    ),
  )
}

/** Reports an incomplete page as an error, since a caller without a cursor may take a short page for the last page. */
function incompleteSearchError(what: string, count: number): WireError {
  return createInvalidInputError(
    'limit',
    `The search stopped after ${searchMsMax / 1_000} s with ${count} ${what}; there may be more. Send cursor=0 and follow \`next\` until it is null; pages may then be short.`,
  )
}
