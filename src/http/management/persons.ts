// Persons, read only: they come from events.

import { isUuid } from '#core/events/uuid.ts'
import { distinctIdPageSchema, encodeDistinctId, encodePerson, personSchema } from '#wire/management/management.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { answer, listAnswer, missing, refusal } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, projectRoutes } from './kit/endpoint.ts'
import { addressWith, uncountedPage } from './kit/page.ts'
import { pageParams, refusedParam, searchParam, textParam, uuidParam } from './kit/query-params.ts'

const tag = 'persons'
const noSuchPerson = missing('There is no person with this uuid here. By distinct id: /persons/?distinct_id=…')

export function personsRoutes(deps: ManagementDeps): ManagementRoute[] {
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
        distinct_id: textParam('The person that this distinct id leads to.'),
        uuid: uuidParam('The person with this uuid; 404 when there is none, as after a merge.'),
        search: searchParam('Part of a distinct id or of the properties.'),
        email: refusedParam('search finds persons by any part of their properties.'),
        properties: refusedParam('search finds persons by any part of their properties.'),
        cohort: refusedParam('/cohorts/:id/persons/ lists the persons of a cohort.'),
      },
      success: { status: 200, schema: uncountedPageSchema(personSchema) },
      handle: async ({ request, project, query }) => {
        const { limit, offset, distinct_id: distinctId, uuid, search } = query
        const { results, hasMore } = await deps.management.listPersons(project.id, {
          limit,
          offset,
          ...(distinctId === undefined ? {} : { distinctId }),
          ...(uuid === undefined ? {} : { uuid }),
          ...(search === undefined ? {} : { search }),
        })
        // An empty list would look like a filter without matches; a script that kept the uuid has to ask again by id.
        if (uuid !== undefined && results.length === 0)
          if ((await deps.management.findPersonByUuid(project.id, uuid)) === null) return refusal(noSuchPerson)
        return listAnswer(uncountedPage(request, query, hasMore, results.length), results.map(encodePerson))
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/persons/:uuid',
      id: 'persons_retrieve',
      tag,
      summary: 'One person by uuid; 404 for one that was merged away.',
      scope: 'person:read',
      success: { status: 200, schema: personSchema },
      handle: async ({ project, params }) => {
        const uuid = params.uuid!
        const person = isUuid(uuid) ? await deps.management.findPersonByUuid(project.id, uuid.toLowerCase()) : null
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
        limit: pageParams().limit,
        cursor: searchParam('The last id of the page before; part of `next`.'),
        offset: refusedParam('pages follow each other by next.'),
      },
      success: { status: 200, schema: distinctIdPageSchema },
      handle: async ({ request, project, params, query }) => {
        const uuid = params.uuid!
        const page = isUuid(uuid)
          ? await deps.management.listDistinctIds(project.id, uuid.toLowerCase(), {
              limit: query.limit,
              ...(query.cursor === undefined ? {} : { after: query.cursor }),
            })
          : null
        if (page === null) return refusal(noSuchPerson)
        const { count, results, hasMore } = page
        const next = hasMore ? addressWith(request, { cursor: results.at(-1)!.distinctId }) : null
        return answer(200, { count, next, previous: null, results: results.map(encodeDistinctId) })
      },
    }),
  ]
}
