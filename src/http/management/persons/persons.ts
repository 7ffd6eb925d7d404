// Persons, which come from events: they are read here, and erased in `erase-persons.ts`.

import type { PersonStore } from '#ports/state/person-store.ts'
import { distinctIdPageSchema, encodeDistinctId, encodePerson, personSchema } from '#wire/management/persons/persons.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { answer, refusal } from '../kit/answers.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerUncountedList, encodeRows } from '../kit/full-page.ts'
import { addressWith } from '../kit/page.ts'
import {
  findPersonById,
  noSuchPerson,
  type PersonFinder,
  personFilters,
  readPersonFilters,
} from '../kit/person-filters.ts'
import { limitParam, pageParams, refusedParam, searchParam } from '../kit/query-params.ts'

type PersonsDeps = EndpointDeps & { readonly management: PersonStore & PersonFinder }

const tag = 'persons'

export function personsRoutes(deps: PersonsDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/persons',
      id: 'persons_list',
      tag,
      summary: 'Persons, newest first. Filters combine.',
      scope: 'person:read',
      query: {
        ...pageParams(),
        ...personFilters,
      },
      success: { status: 200, schema: uncountedPageSchema(personSchema) },
      handle: async call => {
        const { project, query } = call
        const filters = readPersonFilters(query)
        // An empty list would look like a filter without matches; a script with an old uuid has to ask by distinct id.
        if (query.uuid !== undefined && (await deps.management.findPersonByUuid(project.id, query.uuid)) === null)
          return refusal(noSuchPerson)
        return answerUncountedList(
          call,
          query,
          slice => deps.management.listPersons(project.id, { ...filters, ...slice }),
          encodeRows(encodePerson),
        )
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/persons/:uuid',
      id: 'persons_retrieve',
      tag,
      summary: 'One person by uuid or id; 404 for one that was merged away.',
      scope: 'person:read',
      success: { status: 200, schema: personSchema },
      handle: async ({ project, params }) => {
        const person = await findPersonById(deps.management, project.id, params.uuid!)
        return person === null ? refusal(noSuchPerson) : { status: 200, json: encodePerson(person) }
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/persons/:uuid/distinct_ids',
      id: 'persons_distinct_ids_list',
      tag,
      summary: 'All distinct ids of a person, in the order of their bytes. `next` neither skips nor repeats.',
      scope: 'person:read',
      query: {
        limit: limitParam(),
        cursor: searchParam('The last id of the page before; part of `next`.'),
        offset: refusedParam('pages follow each other by next.'),
      },
      success: { status: 200, schema: distinctIdPageSchema },
      handle: async ({ request, project, params, query }) => {
        const person = await findPersonById(deps.management, project.id, params.uuid!)
        if (person === null) return refusal(noSuchPerson)
        const page = await deps.management.listDistinctIds(project.id, person.uuid, {
          limit: query.limit,
          ...(query.cursor === undefined ? {} : { after: query.cursor }),
        })
        if (page === null) return refusal(noSuchPerson)
        const { count, results, hasMore } = page
        const next = hasMore ? addressWith(request, { cursor: results.at(-1)!.distinctId }) : null
        return answer(200, { count, next, previous: null, results: results.map(encodeDistinctId) })
      },
    }),
  ]
}
