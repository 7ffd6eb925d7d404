// Cohorts: list, create, read, change, delete. `cohort-persons.ts` has their members.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  type CohortRefusal,
  type CohortWriteOptions,
  createCohort,
  deleteCohort,
  updateCohort,
  type WrittenCohort,
} from '#services/manage/manage-cohorts.ts'
import { createCohortCounter } from '#services/scans/cohort-persons.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import {
  cohortSchema,
  createCohortSchema,
  decodeCohort,
  decodeCohortMembers,
  encodeCohort,
  type UpdateCohortJson,
  updateCohortSchema,
  writtenCohortSchema,
} from '#wire/management/persons/cohorts.ts'
import { readMemberTable } from '#wire/management/persons/member-csv.ts'
import { postHogCohortFields } from '#wire/management/posthog-fields.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, answer, createInvalidInputError, noContent, refusal } from '../kit/answers.ts'
import { answerCohortWrite, cohortRoutes, refuseCohort } from '../kit/cohort-endpoint.ts'
import { refuseSkippedValidation, skipValidationParam } from '../kit/definition-refusals.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type Call, type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerCountedList, encodeObjects } from '../kit/list-answers.ts'
import { booleanParam, pageParams, searchParam } from '../kit/query-params.ts'
import { cohortPersonsRoutes } from './cohort-persons.ts'

/** Large enough for a table with the maximum number of rows, each with a uuid and one or two more columns. */
const formBytesMax = 8 * 1024 * 1024
const skipUse = booleanParam('Delete the cohort even if it is in use. Requires a key with all scopes.')

export function cohortsRoutes(deps: ManagementDeps): ManagementRoute[] {
  const counter = createCohortCounter(deps)
  const encode = (cohort: Cohort) => encodeCohort(cohort, { isCalculating: counter.isCounting(cohort.id) })
  return [
    ...cohortPersonsRoutes(deps, counter),
    ...projectRoutes(deps, {
      route: 'GET /cohorts',
      id: 'cohorts_list',
      summary: 'List cohorts, newest first, without deleted ones.',
      scope: 'cohort:read',
      query: {
        ...pageParams(),
        search: searchParam('Substring of the name, case-insensitive.'),
        hide_behavioral_cohorts: booleanParam('No effect: behavioral cohorts are not supported.'),
      },
      success: { status: 200, schema: countedPageSchema(cohortSchema) },
      handle: call => {
        const { project, query } = call
        const filters = omitUndefined({ search: query.search })
        return answerCountedList(
          call,
          query,
          slice => deps.management.listCohorts(project.id, { ...slice, ...filters }),
          encodeObjects(encode),
        )
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /cohorts',
      id: 'cohorts_create',
      summary:
        'Create a cohort by filters, or a static cohort with members by id. `members` lists ids without a person.',
      scope: 'cohort:write',
      query: { skip_validation: skipValidationParam },
      body: createCohortSchema,
      postHogFields: postHogCohortFields,
      bodyBytesMax: formBytesMax,
      takesForms: true,
      success: { status: 201, schema: writtenCohortSchema },
      handle: call => answerWrite(201, call, how => createCohort(deps, call.project.id, decodeCohort(call.body), how)),
    }),
    ...cohortRoutes(deps, {
      route: 'GET /cohorts/:cohortId',
      id: 'cohorts_retrieve',
      summary: 'Get one cohort, even if deleted.',
      scope: 'cohort:read',
      success: { status: 200, schema: cohortSchema },
      handle: async ({ item: cohort }) => answer(200, encode(cohort)),
    }),
    ...cohortRoutes(deps, {
      route: 'PATCH /cohorts/:cohortId',
      id: 'cohorts_update',
      summary:
        'Update fields of a cohort; increments its version. Ids and `csv` add members. `deleted: true` deletes it, `false` restores it.',
      scope: 'cohort:write',
      query: { skip_validation: skipValidationParam },
      body: updateCohortSchema,
      postHogFields: postHogCohortFields,
      bodyBytesMax: formBytesMax,
      takesForms: true,
      success: { status: 200, schema: writtenCohortSchema },
      handle: call => {
        const { item: cohort, body } = call
        const expected = typeof body.version === 'number' ? { expectedVersion: body.version } : {}
        return answerWrite(200, call, how => updateCohort(deps, cohort, decodeCohort(body), { ...how, ...expected }))
      },
    }),
    ...cohortRoutes(deps, {
      route: 'DELETE /cohorts/:cohortId',
      id: 'cohorts_destroy',
      summary:
        'Delete a cohort that is not used by a flag or another cohort. `deleted: false` restores it with its members.',
      scope: 'cohort:write',
      query: { skip_validation: skipUse },
      success: { status: 204 },
      handle: async ({ caller, change, item: cohort, query }) => {
        const skips = query.skip_validation === true
        const refused = refuseSkippedValidation(skips, caller)
        if (refused !== null) return refused
        const deleted = await deleteCohort(deps, cohort, { skipValidation: skips, change })
        return deleted.ok ? noContent : refuseCohort(deleted.error)
      },
    }),
  ]
}

async function answerWrite(
  status: number,
  { caller, change, query, body }: Call<{ skip_validation: typeof skipValidationParam }, UpdateCohortJson>,
  save: (
    how: CohortWriteOptions & { readonly members: readonly MemberIds[] },
  ) => Promise<Result<WrittenCohort, CohortRefusal>>,
): Promise<Answer> {
  const skips = query.skip_validation === true
  const refused = refuseSkippedValidation(skips, caller)
  if (refused !== null) return refused
  const members = await readMembers(body)
  if (!members.ok) return refusal(members.error)
  const written = await save({ members: members.value, skipValidation: skips, change })
  return answerCohortWrite(status, written, { withWarnings: skips, isCalculating: false })
}

/** Reads all members that a body names, in any field. */
async function readMembers(body: UpdateCohortJson): Promise<Result<MemberIds[], WireError>> {
  const members = decodeCohortMembers({ persons: body._create_static_person_ids, distinctIds: body.distinct_ids })
  if (body.csv === undefined) return ok(members)
  const table = await runInSlices(readMemberTable(body.csv))
  if (!table.ok) return err(createInvalidInputError('csv', table.error))
  return table.value.ids.length > 0
    ? ok([...members, table.value])
    : err(createInvalidInputError('csv', 'The table has no ids: it is empty or has only a header row.'))
}
