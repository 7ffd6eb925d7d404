// Persons for an export: pages below the id of the last one, each with all of its distinct ids.

import type { DistinctIdMapping } from '#core/persons/person.ts'
import type { PersonFilters, PersonStore, PersonView } from '#ports/state/person-store.ts'

const personsPerPage = 200
const idsPerPage = 1_000

/** @throws PortError when the state cannot be read. */
export async function* exportPersons(
  management: Pick<PersonStore, 'listPersons' | 'listDistinctIds'>,
  projectId: number,
  filters: PersonFilters,
  belowId: number | null,
  signal: AbortSignal,
): AsyncGenerator<readonly PersonView[]> {
  for (let below = belowId; ; ) {
    signal.throwIfAborted()
    const { results, hasMore } = await management.listPersons(projectId, {
      ...filters,
      ...(below !== null && { belowId: below }),
      limit: personsPerPage,
      offset: 0,
    })
    const whole: PersonView[] = []
    for (const person of results) whole.push(await withAllIds(management, person))
    if (whole.length > 0) yield whole
    if (!hasMore) return
    below = results.at(-1)!.id
  }
}

/** A page shows the first ids of each person only. */
async function withAllIds(management: Pick<PersonStore, 'listDistinctIds'>, person: PersonView): Promise<PersonView> {
  if (person.distinctIdCount <= person.distinctIds.length) return person
  const distinctIds: DistinctIdMapping[] = []
  for (;;) {
    const after = distinctIds.at(-1)?.distinctId
    const page = await management.listDistinctIds(person.projectId, person.uuid, {
      limit: idsPerPage,
      ...(after !== undefined && { after }),
    })
    // Merged into another person since the page was read: it is shown as the page had it.
    if (page === null) return person
    distinctIds.push(...page.results)
    if (!page.hasMore) return { ...person, distinctIds, distinctIdCount: distinctIds.length }
  }
}
