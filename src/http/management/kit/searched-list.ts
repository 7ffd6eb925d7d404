// A list whose rows have to be looked for, so that most of what is read may not belong to it. A page is as full as its
// limit says, unless the caller follows `next`: then it may be short, or empty, before the last.

import { err, ok, type Result } from '#core/result.ts'
import { TooManyScansError } from '#services/scans/subject-scans.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answerScan } from './answer-scan.ts'
import { type Answer, invalidInput } from './answers.ts'
import { answerCursorList, type PageCall } from './full-page.ts'
import { type QueryParam, wholeNumberParam } from './query-params.ts'

/** How long the rows of a page are looked for. */
const searchMsMax = 10_000
/** How long an answer may take with the turns of other searches in between. */
const answerMsMax = 30_000

/** `cursor` of such a list. */
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
  /** Where the search goes on; null when nothing is left. */
  readonly nextAfter: number | null
  /** How long the search took, without the turns of others. */
  readonly lookedMs: number
}

export interface SearchedList {
  /** The place to begin after; undefined when the caller sent none. */
  readonly cursor: number | undefined
  readonly limit: number
  /** What is looked for, in the plural. */
  readonly what: string
  readonly monotonicNowMs: () => number
}

/** @param search finds rows behind a place, for a while. 0 is the place before the first. */
export function answerSearchedList(
  call: PageCall,
  { cursor, limit, what, monotonicNowMs }: SearchedList,
  search: (after: number, limit: number) => Promise<Result<SearchedSlice, WireError>>,
): Promise<Answer> {
  const startMs = monotonicNowMs()
  let found = 0
  let lookedMs = 0
  return answerScan(() =>
    answerCursorList<string, number>(
      call,
      { cursor, limit, mayBeShort: cursor !== undefined },
      async (after = 0, sliceLimit) => {
        const slice = await search(after, sliceLimit).catch((error: unknown) => {
          // What was found by then is a page for whoever follows `next`.
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
          if (lookedMs >= searchMsMax) return err(foundFew(what, found))
          if (tookMs >= answerMsMax) throw new TooManyScansError('other searches used up the time of this search')
        }
        return ok({ rows: results, next: nextAfter, endsPage: isOpen && tookMs >= searchMsMax && cursor !== undefined })
      },
      { rows: texts => texts, cursor: String, head: { previous: null } },
    ),
  )
}

/** Who asks without a cursor may take a short page for the last one. */
function foundFew(what: string, count: number): WireError {
  return invalidInput(
    'limit',
    `The search stopped after ${searchMsMax / 1_000} s with ${count} ${what}; there may be more. Send cursor=0 and follow \`next\` until it is null; pages may then be short.`,
  )
}
