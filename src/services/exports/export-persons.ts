// Persons for an export: pages by descending id, and each person with all of its distinct ids.

import type { MaybePromise } from '#core/maybe-promise.ts'
import type { DistinctIdMapping } from '#core/persons/person.ts'
import type { CohortMemberStore, PersonInCohorts } from '#ports/state/cohort-store.ts'
import type { PersonFilters, PersonStore, PersonView } from '#ports/state/person-store.ts'

const personsPerPage = 200
const idsPerPage = 1_000

export interface PersonsToExport {
  readonly projectId: number
  readonly filters: PersonFilters
  readonly belowId: number | null
  /** Ids of the static cohorts whose membership `holds` reads. */
  readonly staticCohortIds: readonly number[]
  /** Decides which of the persons that pass the filters are exported. */
  readonly holds: (person: PersonInCohorts) => MaybePromise<boolean>
}

/**
 * The first batch may be empty: a client with few matches must see that the export runs.
 * @throws PortError when the state cannot be read.
 */
export async function* exportPersons(
  management: Pick<PersonStore, 'listDistinctIds'> & Pick<CohortMemberStore, 'listPersonsBelow'>,
  { projectId, filters, belowId, staticCohortIds, holds }: PersonsToExport,
  signal: AbortSignal,
): AsyncGenerator<readonly PersonView[]> {
  let isFirst = true
  for (let below = belowId; ; ) {
    signal.throwIfAborted()
    const { results, hasMore, continueAfterId } = await management.listPersonsBelow(
      projectId,
      { ...filters, ...(below !== null && { belowId: below }), limit: personsPerPage },
      staticCohortIds,
    )
    const whole: PersonView[] = []
    for (const person of results) if (await holds(person)) whole.push(await loadAllIds(management, person))
    if (whole.length > 0 || (isFirst && hasMore)) yield whole
    if (!hasMore) return
    isFirst = false
    below = continueAfterId
  }
}

/** Loads all of the person's distinct ids, since a page has only the first few. */
async function loadAllIds(management: Pick<PersonStore, 'listDistinctIds'>, person: PersonView): Promise<PersonView> {
  if (person.distinctIdCount <= person.distinctIds.length) return person
  const distinctIds: DistinctIdMapping[] = []
  for (;;) {
    const after = distinctIds.at(-1)?.distinctId
    const page = await management.listDistinctIds(person.projectId, person.uuid, {
      limit: idsPerPage,
      ...(after !== undefined && { after }),
    })
    // A person that was merged into another since the page was read is exported as it was on the page.
    if (page === null) return person
    distinctIds.push(...page.results)
    if (!page.hasMore) return { ...person, distinctIds, distinctIdCount: distinctIds.length }
  }
}
