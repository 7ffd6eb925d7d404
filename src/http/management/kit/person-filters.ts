// Which persons are meant: the filters of pages and of exports, and the ids in paths.

import { definedOf } from '#core/defined-of.ts'
import { isUuid } from '#core/events/uuid.ts'
import type { FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import type { CohortMemberStore } from '#ports/state/cohort-store.ts'
import type { PersonStore, PersonView } from '#ports/state/person-store.ts'
import { notFoundError } from './answers.ts'
import { idNumber } from './item-routes.ts'
import { personConditions } from './person-conditions.ts'
import { type QueryValues, searchParam, textParam, uuidParam } from './query-params.ts'

export const personFilters = {
  distinct_id: textParam('The person with this distinct id.'),
  uuid: uuidParam('The person with this uuid; 404 if there is none, for example after a merge.'),
  search: searchParam('Substring of a distinct id or of the properties.'),
  ...personConditions,
}

/** Those that the state answers, and what it can tell of the others. @param condition of the others. */
export function readPersonFilters(query: QueryValues<typeof personFilters>, condition: FlagProbe | null) {
  const { distinct_id: distinctId, uuid, search } = query
  return definedOf({ distinctId, uuid, search, propertyParts: condition?.neededParts() })
}

/** Reads persons by uuid and by number. */
export type PersonFinder = Pick<PersonStore, 'findPersonByUuid'> & Pick<CohortMemberStore, 'listPersonsAfter'>

/** @param id `uuid` or `id` of a person, as PostHog takes either; null when it is neither, or leads to nobody. */
export async function findPersonById(store: PersonFinder, projectId: number, id: string): Promise<PersonView | null> {
  if (isUuid(id)) return store.findPersonByUuid(projectId, id.toLowerCase())
  const number = idNumber(id)
  if (number === null) return null
  const { results } = await store.listPersonsAfter(projectId, { afterPersonId: number - 1, limit: 1 }, [])
  return results[0]?.id === number ? results[0] : null
}

export const noSuchPerson = notFoundError(
  'The project has no person with this uuid or id. To search by distinct id: /persons/?distinct_id=…',
)
