// Reads persons, which come from events; `erase-persons.ts` erases them.

import Type from 'typebox'
import { type ImportJob, toStagingProjectId } from '#core/imports/import-job.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { err, ok } from '#core/result.ts'
import type { PersonFilters, PersonView } from '#ports/state/person-store.ts'
import { joinStagedPersons, listPersonsWithJob } from '#services/imports/persons-with-job.ts'
import { compilePersonTest, findPersons, type PersonSearch } from '#services/scans/find-persons.ts'
import { searchPersons } from '#services/scans/search-persons.ts'
import { distinctIdPageSchema, encodeDistinctId, encodePerson, personSchema } from '#wire/management/persons/persons.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import {
  type Answer,
  answer,
  answerFromEventStore,
  createInvalidInputError,
  listAnswer,
  refusal,
} from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from '../kit/endpoint.ts'
import { answerWithJob, importJobParam } from '../kit/import-job-param.ts'
import { answerUncountedList, buildUrlWithParams, encodeRows } from '../kit/list-answers.ts'
import { createNotEvaluableError, readPersonCondition } from '../kit/person-conditions.ts'
import { findPersonById, noSuchPerson, personFilters, readPersonFilters } from '../kit/person-filters.ts'
import { limitParam, pageParams, requiredParam, searchParam, textParam, unsupportedParam } from '../kit/query-params.ts'
import { answerSearchedList, searchCursorParam } from '../kit/searched-list.ts'

const noOffset = createInvalidInputError(
  'offset',
  'With cursor or import_job, or filtered by properties, e-mail or cohort: follow next instead.',
)

const listQuery = { ...pageParams(), cursor: searchCursorParam(), ...personFilters, ...importJobParam }

/** The most values that tools get as suggestions for conditions, as in PostHog. */
const suggestedMax = 20

const valuesSchema = Type.Object({
  results: Type.Array(Type.Object({ name: Type.Unknown({ description: 'The value.' }), count: Type.Integer() }), {
    description: `The ${suggestedMax} most frequent values, with the number of persons.`,
  }),
  refreshing: Type.Literal(false),
  value_count: Type.Integer({ description: 'Number of distinct values.' }),
  is_sample: Type.Boolean({ description: 'True if not all persons were examined.' }),
})

export function personsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /persons',
      id: 'persons_list',
      summary:
        'List persons, newest first. Filters are combined with AND. When filtered by properties or cohort, `next` contains a cursor.',
      scope: 'person:read',
      query: listQuery,
      success: { status: 200, schema: uncountedPageSchema(personSchema) },
      handle: call => answerWithJob(deps, call, job => listPersons(deps, call, job)),
    }),
    ...projectRoutes(deps, {
      route: 'GET /persons/:uuid',
      id: 'persons_retrieve',
      summary: 'Get one person by uuid or id; 404 if it was merged into another.',
      scope: 'person:read',
      query: importJobParam,
      success: { status: 200, schema: personSchema },
      handle: call =>
        answerWithJob(deps, call, async job => {
          const person = await findPerson(deps, call.project, call.params.uuid!, job)
          return person === null ? refusal(noSuchPerson) : { status: 200, json: encodePerson(person) }
        }),
    }),
    ...projectRoutes(deps, {
      route: 'GET /persons/:uuid/distinct_ids',
      id: 'persons_distinct_ids_list',
      summary: 'List all distinct ids of a person, in byte order. Following `next` neither skips nor repeats any.',
      scope: 'person:read',
      query: {
        limit: limitParam(),
        cursor: searchParam('Last id of the previous page; part of `next`.'),
        offset: unsupportedParam('follow next for more pages.'),
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
        const next = hasMore ? buildUrlWithParams(request, { cursor: results.at(-1)!.distinctId }) : null
        return answer(200, { count, next, previous: null, results: results.map(encodeDistinctId) })
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /persons/values',
      id: 'persons_values',
      summary: 'List the most frequent values of a property among up to 50,000 persons.',
      scope: 'person:read',
      query: {
        key: requiredParam(textParam('Property name.')),
        value: searchParam('Substring of the value, case-insensitive.'),
      },
      success: { status: 200, schema: valuesSchema },
      handle: ({ project, query, signal }) =>
        answerFromEventStore(async () => {
          const { key: name, value: search } = query
          const asked = { projectId: project.id, of: 'person', name, limit: suggestedMax } as const
          const found = await deps.events.listPropertyValues({ ...asked, ...omitUndefined({ search }) }, signal)
          return listAnswer(
            { refreshing: false, value_count: found.valueCount, is_sample: found.isSample },
            found.results.map(({ valueJson, count }) => `{"name":${valueJson},"count":${count}}`),
          )
        }),
    }),
  ]
}

async function listPersons(
  deps: ManagementDeps,
  call: ProjectCall<typeof listQuery, unknown>,
  job: ImportJob | null,
): Promise<Answer> {
  const { caller, project, query, signal } = call
  const { limit, offset, cursor } = query
  // Answers 404: an empty list would look like a filter without matches. A script with an old uuid must use the distinct
  // id.
  if (query.uuid !== undefined && (await findPerson(deps, project, query.uuid, job)) === null)
    return refusal(noSuchPerson)
  const condition = await readPersonCondition(deps, caller, project, query)
  if (!condition.ok) return refusal(condition.error)
  const probe = condition.value
  // A stored person may lack properties that the pending job adds, so with a job, each person is tested.
  const filters = readPersonFilters(query, job === null ? probe : null)
  if (job === null && probe === null && cursor === undefined)
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
    test: probe === null ? () => ok(true) : compilePersonTest(probe, deps.scans, deps.clock.nowMs()),
    read: async (after, count) => {
      const page = { ...filters, ...(after > 0 && { belowId: after }), limit: count }
      const found =
        job === null
          ? await deps.management.listPersonsBelow(project.id, page, cohortIds)
          : await listPersonsWithJob(deps, project, job, page, cohortIds)
      return { ...found, nextAfter: found.continueAfterId }
    },
    encode: encodePerson,
  }
  const list = { cursor, limit, what: 'persons', monotonicNowMs: deps.monotonicNowMs }
  return answerSearchedList(call, list, async (after, count) => {
    const found = await findPersons(deps, search, { after, limit: count }, signal)
    return found.ok ? found : err(createNotEvaluableError(found.error))
  })
}

/** @param id `uuid` or `id` of a person. @param job the pending job whose persons are found, too. */
async function findPerson(
  deps: ManagementDeps,
  project: Project,
  id: string,
  job: ImportJob | null,
): Promise<PersonView | null> {
  const person = await findPersonById(deps.management, project.id, id)
  if (job === null) return person
  const staged = person ?? (await findPersonById(deps.management, toStagingProjectId(job.id), id))
  return staged === null ? null : ((await joinStagedPersons(deps, project, job, [staged]))[0] ?? null)
}

/** Whether the filters cause a text search over all persons. */
function isSearch({ distinctId, uuid, search = '' }: PersonFilters): boolean {
  return search !== '' && distinctId === undefined && uuid === undefined
}
