// The filters of persons, for pages and for exports alike.

import { definedOf } from '#core/defined-of.ts'
import { missing } from './answers.ts'
import { type QueryValues, refusedParam, searchParam, textParam, uuidParam } from './query-params.ts'

export const personFilters = {
  distinct_id: textParam('The person that this distinct id leads to.'),
  uuid: uuidParam('The person with this uuid; 404 when there is none, as after a merge.'),
  search: searchParam('Part of a distinct id or of the properties.'),
  email: refusedParam('search finds persons by any part of their properties.'),
  properties: refusedParam('search finds persons by any part of their properties.'),
  cohort: refusedParam('/cohorts/:id/persons/ lists the persons of a cohort.'),
}

export function readPersonFilters(query: QueryValues<typeof personFilters>) {
  return definedOf({ distinctId: query.distinct_id, uuid: query.uuid, search: query.search })
}

export const noSuchPerson = missing('There is no person with this uuid here. By distinct id: /persons/?distinct_id=…')
