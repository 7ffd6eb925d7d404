// Persons, which come from events: they are read here, and erased in `erase-persons.ts`.

import { err, ok } from '#core/result.ts'
import type { CohortMemberStore } from '#ports/state/cohort-store.ts'
import type { PersonFilters, PersonStore } from '#ports/state/person-store.ts'
import { createPersonTest, type FindPersonsDeps, findPersons, type PersonSearch } from '#services/scans/find-persons.ts'
import { searchPersons } from '#services/scans/search-persons.ts'
import { distinctIdPageSchema, encodeDistinctId, encodePerson, personSchema } from '#wire/management/persons/persons.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { answer, invalidInput, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerUncountedList, encodeRows } from '../kit/full-page.ts'
import { addressWith } from '../kit/page.ts'
import { notEvaluableError, type PersonConditionDeps, readPersonCondition } from '../kit/person-conditions.ts'
import {
  findPersonById,
  noSuchPerson,
  type PersonFinder,
  personFilters,
  readPersonFilters,
} from '../kit/person-filters.ts'
import { limitParam, pageParams, refusedParam, searchParam } from '../kit/query-params.ts'
import { answerSearchedList, searchCursorParam } from '../kit/searched-list.ts'

type PersonsDeps = EndpointDeps &
  FindPersonsDeps &
  PersonConditionDeps &
  Pick<ManagementDeps, 'clock'> & {
    readonly management: PersonStore & PersonFinder & Pick<CohortMemberStore, 'listPersonsBelow'>
  }

const tag = 'persons'

const noOffset = invalidInput(
  'offset',
  'With cursor, or filtered by properties, e-mail or cohort: follow next instead.',
)

export function personsRoutes(deps: PersonsDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/persons',
      id: 'persons_list',
      tag,
      summary:
        'List persons, newest first. Filters are combined with AND. When filtered by properties or cohort, `next` contains a cursor.',
      scope: 'person:read',
      query: {
        ...pageParams(),
        cursor: searchCursorParam(),
        ...personFilters,
      },
      success: { status: 200, schema: uncountedPageSchema(personSchema) },
      handle: async call => {
        const { caller, project, query, signal } = call
        const { limit, offset, cursor } = query
        // An empty list would look like a filter without matches; a script with an old uuid must use the distinct id.
        if (query.uuid !== undefined && (await deps.management.findPersonByUuid(project.id, query.uuid)) === null)
          return refusal(noSuchPerson)
        const condition = await readPersonCondition(deps, caller, project, query)
        if (!condition.ok) return refusal(condition.error)
        const probe = condition.value
        const filters = readPersonFilters(query, probe)
        if (probe === null && cursor === undefined)
          return answerUncountedList(
            call,
            query,
            isSearch(filters)
              ? searchPersons(deps.management, project.id, filters, signal)
              : slice => deps.management.listPersons(project.id, { ...filters, ...slice }),
            encodeRows(encodePerson),
          )
        if (offset > 0) return refusal(noOffset)
        const cohortIds = probe?.staticCohortIds ?? []
        const search: PersonSearch<string> = {
          projectId: project.id,
          test: probe === null ? () => ok(true) : createPersonTest(probe, deps.scans, deps.clock.nowMs()),
          read: async (after, count) => {
            const page = { ...filters, ...(after > 0 && { belowId: after }), limit: count }
            const found = await deps.management.listPersonsBelow(project.id, page, cohortIds)
            return { ...found, nextAfter: found.nextBehindId }
          },
          encode: encodePerson,
        }
        const list = { cursor, limit, what: 'persons', monotonicNowMs: deps.monotonicNowMs }
        return answerSearchedList(call, list, async (after, count) => {
          const found = await findPersons(deps, search, { after, limit: count }, signal)
          return found.ok ? found : err(notEvaluableError(found.error))
        })
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/persons/:uuid',
      id: 'persons_retrieve',
      tag,
      summary: 'Get one person by uuid or id; 404 if it was merged into another.',
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
      summary: 'List all distinct ids of a person, in byte order. Following `next` neither skips nor repeats any.',
      scope: 'person:read',
      query: {
        limit: limitParam(),
        cursor: searchParam('Last id of the previous page; part of `next`.'),
        offset: refusedParam('follow next for more pages.'),
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

/** Whether the filters search the texts of all persons. */
function isSearch({ distinctId, uuid, search = '' }: PersonFilters): boolean {
  return search !== '' && distinctId === undefined && uuid === undefined
}
