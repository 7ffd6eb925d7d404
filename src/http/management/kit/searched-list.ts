// A list whose rows have to be looked for, so that most of what is read may not belong to it. A page is as full as its
// limit says, unless the caller follows `next`: then it may be short, or empty, before the last.

import { err, ok, type Result } from '#core/result.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, invalidInput } from './answers.ts'
import { answerCursorList, type PageCall } from './full-page.ts'
import { type QueryParam, wholeNumberParam } from './query-params.ts'
import { answerScan } from './scan-turns.ts'

/** How long the rows of a page are looked for. */
const searchMsMax = 10_000

/** `cursor` of such a list. */
export function searchCursorParam(): QueryParam<number | undefined> {
  return wholeNumberParam({
    description: 'From `next` of the page before; 0 is the first page. A page with it may be short: follow `next`.',
    minimum: 0,
  })
}

export interface SearchedSlice {
  /** JSON texts. */
  readonly results: readonly string[]
  /** Where the search goes on; null when nothing is left. */
  readonly nextAfter: number | null
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
  const endMs = monotonicNowMs() + searchMsMax
  let found = 0
  return answerScan(() =>
    answerCursorList<string, number>(
      call,
      { cursor, limit, mayBeShort: cursor !== undefined },
      async (after = 0, sliceLimit) => {
        const slice = await search(after, sliceLimit)
        if (!slice.ok) return slice
        const { results, nextAfter } = slice.value
        found += results.length
        const endsPage = nextAfter !== null && found < limit && monotonicNowMs() >= endMs
        if (endsPage && cursor === undefined) return err(foundFew(what, found))
        return ok({ rows: results, next: nextAfter, endsPage })
      },
      { rows: texts => texts, cursor: String, head: { previous: null } },
    ),
  )
}

/** Who asks without a cursor may take a short page for the last one. */
function foundFew(what: string, count: number): WireError {
  return invalidInput(
    'limit',
    `A search of ${searchMsMax / 1_000} s found ${count} ${what}, and there may be more. Ask for cursor=0 and follow \`next\` until it is null: pages are short then.`,
  )
}
