// Slices by offset of the persons in whose texts something is found. The state looks through a few thousand persons in one
// call, so that a search of many holds up nobody else who asks; those whom the offset passes over are found and dropped.

import type { CohortMemberStore } from '#ports/state/cohort-store.ts'
import type { PersonFilters, PersonView } from '#ports/state/person-store.ts'

const personsPerPage = 200
/** Bounds the properties that are held; a single person may exceed it. */
const heldCharsMax = 1024 * 1024

export interface PersonsSlice {
  readonly offset: number
  readonly limit: number
}

/** @returns a reader of slices that follow each other, newest persons first. */
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
      if (isAtEnd || (passed === offset && isEnough(limit))) break
      await findMore()
    }
    // One is kept back, which says that there are more.
    const results = held.splice(0, isAtEnd ? limit : Math.min(limit, held.length - 1))
    passed += results.length
    return { results, hasMore: held.length > 0 }
  }

  function isEnough(limit: number): boolean {
    if (held.length <= 1) return false
    return (
      held.length > limit || held.reduce((sum, { propertiesJson }) => sum + propertiesJson.length, 0) > heldCharsMax
    )
  }

  async function findMore(): Promise<void> {
    signal.throwIfAborted()
    const page = { ...filters, ...(belowId !== undefined && { belowId }), limit: personsPerPage }
    const { results, nextBehindId } = await management.listPersonsBelow(projectId, page, [])
    held.push(...results)
    isAtEnd = nextBehindId === null
    belowId = nextBehindId ?? undefined
  }
}
