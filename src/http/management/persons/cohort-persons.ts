// The members of a cohort, their count, and the cohorts of a person. Members of static cohorts are added and removed by
// id.

import Type from 'typebox'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { err } from '#core/result.ts'
import { changeMembers } from '#services/manage/manage-cohorts.ts'
import {
  type CohortCounter,
  listCohortsOfPerson,
  listMembersOfCohort,
  type NoMembers,
} from '#services/scans/cohort-persons.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import { waitOrStop } from '#services/shared/wait-or-stop.ts'
import {
  addMembersSchema,
  cohortSchema,
  decodeCohortMembers,
  encodeCohort,
  removeMembersSchema,
  writtenCohortSchema,
} from '#wire/management/persons/cohorts.ts'
import { encodePerson, personSchema } from '#wire/management/persons/persons.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import {
  type Answer,
  answer,
  answerFromScan,
  createInvalidInputError,
  createRequiredError,
  encodeEachInSteps,
  listAnswer,
  refusal,
  stateUnavailable,
} from '../kit/answers.ts'
import { answerCohortWrite, cohortRoutes, noSuchCohort } from '../kit/cohort-endpoint.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ItemCall, type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { findPersonById, noSuchPerson } from '../kit/person-filters.ts'
import { limitParam, type QuerySpec, requiredParam, textParam, unsupportedParam } from '../kit/query-params.ts'
import { answerSearchedList, searchCursorParam } from '../kit/searched-list.ts'

/** How long an answer waits for a count before it reports that the count is still running. */
const countWaitMs = 3_000
/** How many cohorts are loaded and tested at a time. */
const testedCohortsMax = 200

export function cohortPersonsRoutes(deps: ManagementDeps, counter: CohortCounter): ManagementRoute[] {
  return [
    ...cohortRoutes(deps, {
      route: 'PATCH /cohorts/:cohortId/add_persons_to_static_cohort',
      id: 'cohorts_add_persons_to_static_cohort',
      summary:
        'Add persons to a static cohort. Flags use the change immediately; `members` lists ids without a person.',
      scope: 'cohort:write',
      body: addMembersSchema,
      success: { status: 200, schema: writtenCohortSchema },
      handle: call => {
        const { person_ids: persons, distinct_ids: distinctIds } = call.body
        return answerMemberChange(call, 'add', decodeCohortMembers({ persons, distinctIds }))
      },
    }),
    ...cohortRoutes(deps, {
      route: 'PATCH /cohorts/:cohortId/remove_person_from_static_cohort',
      id: 'cohorts_remove_person_from_static_cohort',
      summary: 'Remove one or more persons from a static cohort. Flags use the change immediately.',
      scope: 'cohort:write',
      body: removeMembersSchema,
      success: { status: 200, schema: writtenCohortSchema },
      handle: call => {
        const { body } = call
        const persons = [...(body.person_id === undefined ? [] : [body.person_id]), ...(body.person_ids ?? [])]
        return answerMemberChange(call, 'remove', decodeCohortMembers({ persons, distinctIds: body.distinct_ids }))
      },
    }),
    ...cohortRoutes(deps, {
      route: 'GET /cohorts/:cohortId/persons',
      id: 'cohorts_persons_list',
      summary:
        'List the persons in a cohort by their stored properties, oldest first. With `cursor`, pages before the last may be short or empty.',
      scope: 'cohort:read person:read',
      query: {
        limit: limitParam(),
        cursor: searchCursorParam(),
        offset: unsupportedParam('follow next for more pages.'),
        search: unsupportedParam('use /persons/?search=… to find persons by their properties.'),
      },
      success: { status: 200, schema: uncountedPageSchema(personSchema) },
      handle: async call => {
        const { item: cohort, query } = call
        if (cohort.deleted) return refusal(noSuchCohort)
        const { cursor, limit } = query
        const { monotonicNowMs } = deps
        return answerSearchedList(call, { cursor, limit, what: 'members', monotonicNowMs }, async (after, count) => {
          const found = await listMembersOfCohort(deps, cohort, { after, limit: count }, encodePerson, call.signal)
          return found.ok ? found : err(notEvaluableError(found.error))
        })
      },
    }),
    ...cohortRoutes(deps, {
      route: 'POST /cohorts/:cohortId/recount',
      id: 'cohorts_recount',
      summary: 'Count the members now. 202 with `is_calculating: true` if counting takes longer.',
      scope: 'cohort:write',
      success: { status: 200, schema: cohortSchema },
      handle: async ({ item: cohort }) => {
        if (cohort.deleted) return refusal(noSuchCohort)
        const waiting = new AbortController()
        const late = waitOrStop(countWaitMs, waiting.signal).then(() => 'counting' as const)
        const counted = await Promise.race([counter.count(cohort), late]).finally(() => waiting.abort())
        if (counted === 'counting') return answer(202, encodeCohort(cohort, { isCalculating: true }))
        if (!counted.ok) return refusal(counted.error === 'too_many' ? countBusy : notEvaluableError(counted.error))
        const current = (await deps.management.findCohort(cohort.projectId, cohort.id)) ?? cohort
        return answer(200, encodeCohort(current, { isCalculating: counter.isCounting(cohort.id) }))
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /persons/cohorts',
      id: 'persons_cohorts',
      summary:
        'List the cohorts that a person is currently in, newest first. Cohorts that cannot be evaluated have no members.',
      scope: 'person:read cohort:read',
      query: { person_id: requiredParam(textParam("The person's `uuid` or `id`.")) },
      success: { status: 200, schema: Type.Object({ results: Type.Array(cohortSchema) }) },
      handle: ({ project, query, signal }) =>
        answerFromScan(async () => {
          const person = await findPersonById(deps.management, project.id, query.person_id)
          if (person === null) return refusal(noSuchPerson)
          const found: Cohort[] = []
          for (let offset = 0; !signal.aborted; ) {
            const { results, count } = await deps.management.listCohorts(project.id, {
              limit: testedCohortsMax,
              offset,
            })
            const ofPage = await listCohortsOfPerson(deps, project.id, person, results, signal)
            if (!ofPage.ok) return refusal(stateUnavailable)
            found.push(...ofPage.value)
            offset += results.length
            if (results.length === 0 || offset >= count) break
          }
          const encode = (cohort: Cohort) =>
            JSON.stringify(encodeCohort(cohort, { isCalculating: counter.isCounting(cohort.id) }))
          return listAnswer({}, await runInSlices(encodeEachInSteps(found, encode)))
        }),
    }),
  ]

  async function answerMemberChange(
    { item: cohort, change }: ItemCall<Cohort, QuerySpec, unknown>,
    action: 'add' | 'remove',
    members: readonly MemberIds[],
  ): Promise<Answer> {
    if (members.length === 0) return refusal(createRequiredError(action === 'add' ? 'person_ids' : 'person_id'))
    return answerCohortWrite(200, await changeMembers(deps, cohort, action, members, change), {
      withWarnings: false,
      isCalculating: counter.isCounting(cohort.id),
    })
  }
}

function notEvaluableError(reason: NoMembers): WireError {
  if (reason === 'not_served') return stateUnavailable
  return createInvalidInputError('filters', `The cohort cannot be evaluated: ${reason}.`)
}

const countBusy = wireError(503, 'state_unavailable', 'Too many cohorts are queued for counting. Try again.')
