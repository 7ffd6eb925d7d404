// Slices, by offset, of the persons whose texts match a search. The state searches a few thousand persons per call, so
// that a long search does not delay other requests; matches before the offset are dropped.

import type { CohortMemberStore } from '#ports/state/cohort-store.ts'
import type { PersonFilters, PersonView } from '#ports/state/person-store.ts'

const personsPerPage = 200
/** Limits the size of the properties held in memory; a single person may exceed it. */
const heldCharsMax = 1024 * 1024

export interface PersonsSlice {
  readonly offset: number
  readonly limit: number
}

/** @returns a function that reads consecutive slices, newest persons first. */
export function searchPersons(
  management: Pick<CohortMemberStore, 'listPersonsBelow'>,
  projectId: number,
  filters: PersonFilters,
  signal: AbortSignal,
): (slice: PersonsSlice) => Promise<{ readonly results: readonly PersonView[]; readonly hasMore: boolean }> {
  const held: PersonView[] = []
  let passed = 0
  let belowId: number | undefined
  let isAtEnd = false

  return async ({ offset, limit }) => {
    for (;;) {
      passed += held.splice(0, offset - passed).length
      if (isAtEnd || (passed === offset && hasEnough(limit))) break
      await loadMore()
    }
    // One match is kept back, which shows that more matches remain.
    const results = held.splice(0, isAtEnd ? limit : Math.min(limit, held.length - 1))
    passed += results.length
    return { results, hasMore: held.length > 0 }
  }

  function hasEnough(limit: number): boolean {
    if (held.length <= 1) return false
    return (
      held.length > limit || held.reduce((sum, { propertiesJson }) => sum + propertiesJson.length, 0) > heldCharsMax
    )
  }

  async function loadMore(): Promise<void> {
    signal.throwIfAborted()
    const page = { ...filters, ...(belowId !== undefined && { belowId }), limit: personsPerPage }
    const { results, continueAfterId } = await management.listPersonsBelow(projectId, page, [])
    held.push(...results)
    isAtEnd = continueAfterId === null
    belowId = continueAfterId ?? undefined
  }
}
