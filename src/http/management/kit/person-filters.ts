// Selects persons: the filters of pages and exports, and the ids in paths.

import { isUuid } from '#core/events/uuid.ts'
import type { FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { CohortMemberStore } from '#ports/state/cohort-store.ts'
import type { PersonStore, PersonView } from '#ports/state/person-store.ts'
import { createNotFoundError } from './answers.ts'
import { parseIdNumber } from './endpoint.ts'
import { personConditions } from './person-conditions.ts'
import { type QueryValues, searchParam, textParam, uuidParam } from './query-params.ts'

export const personFilters = {
  distinct_id: textParam('The person with this distinct id.'),
  uuid: uuidParam('The person with this uuid; 404 if there is none, for example after a merge.'),
  search: searchParam('Substring of a distinct id or of the properties.'),
  ...personConditions,
}

/**
 * Returns the filters that the state evaluates, and which parts of each person's properties it must return so that
 * `condition` can be tested. @param condition the filters that the state cannot evaluate.
 */
export function readPersonFilters(query: QueryValues<typeof personFilters>, condition: FlagProbe | null) {
  const { distinct_id: distinctId, uuid, search } = query
  return omitUndefined({ distinctId, uuid, search, propertyParts: condition?.neededParts() })
}

/** Reads persons by uuid and by number. */
export type PersonFinder = Pick<PersonStore, 'findPersonByUuid'> & Pick<CohortMemberStore, 'listPersonsAfter'>

/**
 * @param id `uuid` or `id` of a person, as in PostHog. @returns null when it is neither, or the person does not exist.
 */
export async function findPersonById(store: PersonFinder, projectId: number, id: string): Promise<PersonView | null> {
  if (isUuid(id)) return store.findPersonByUuid(projectId, id.toLowerCase())
  const number = parseIdNumber(id)
  if (number === null) return null
  const { results } = await store.listPersonsAfter(projectId, { afterPersonId: number - 1, limit: 1 }, [])
  return results[0]?.id === number ? results[0] : null
}

export const noSuchPerson = createNotFoundError(
  'The project has no person with this uuid or id. To search by distinct id: /persons/?distinct_id=…',
)
