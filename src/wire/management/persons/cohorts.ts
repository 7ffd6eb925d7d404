// Cohorts, the answer to a write of members, and the ids that name members. Source: PostHog's public REST API;
// `version`, `warnings` and `members` are ours.

import Type, { type Static } from 'typebox'
import { type Cohort, cohortResource } from '#core/flags/definitions/cohort.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import type { JsonObject } from '#core/json.ts'
import { readFields } from '#core/resource.ts'
import { err } from '#core/result.ts'
import { flagWarningSchema } from '../flags/flags.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from '../resource-json.ts'
import { nullable } from '../shapes.ts'

export const cohortSchema = buildItemSchema(cohortResource, {
  groups: Type.Array(Type.Unknown(), { description: 'Older form of `filters`; always empty.' }),
  count: nullable(Type.Integer({ description: 'Number of members as of `last_calculation`; null if never counted.' })),
  is_calculating: Type.Boolean({ description: 'Whether this process is counting the members.' }),
  errors_calculating: Type.Integer(),
  experiment_set: Type.Array(Type.Integer()),
})

export const memberReportSchema = Type.Object({
  changed: Type.Integer({ description: 'Persons added or removed.' }),
  unchanged: Type.Integer({ description: 'Persons that already were, or were not, members.' }),
  unknown_count: Type.Integer({ description: 'Number of ids without a person.' }),
  unknown: Type.Array(Type.String(), { description: 'The first 10,000 of these ids.' }),
})
export type MemberReportJson = Static<typeof memberReportSchema>

/** The answer to a write: `warnings` with `skip_validation` or when no id was found, `members` when ids were given. */
export const writtenCohortSchema = Type.Object({
  ...cohortSchema.properties,
  warnings: Type.Optional(Type.Array(flagWarningSchema)),
  members: Type.Optional(memberReportSchema),
})

const personIds = Type.Array(Type.Union([Type.Integer(), Type.String()]), { description: 'Person ids or uuids.' })
const distinctIds = Type.Array(Type.String())

const memberLists = {
  _create_static_person_ids: Type.Optional(personIds),
  distinct_ids: Type.Optional(distinctIds),
  csv: Type.Optional(
    Type.String({
      description:
        'A table with one column of distinct ids or person uuids, or with a header row that names one of its columns ' +
        '`person_id`, `distinct_id` or `uuid` (of a person). Can also be sent as a file in multipart/form-data.',
    }),
  ),
}

const { deleted: _onlyUpdates, ...fieldsOfNew } = cohortResource.fields
export const createCohortSchema = buildBodySchemas({ ...cohortResource, fields: fieldsOfNew }, memberLists).create
export const updateCohortSchema = buildBodySchemas(cohortResource, {
  ...memberLists,
  version: Type.Optional(
    nullable(Type.Integer({ description: 'Version the change is based on. 409 if it is no longer current.' })),
  ),
}).update
export type UpdateCohortJson = Static<typeof updateCohortSchema>

export const addMembersSchema = Type.Object({
  person_ids: Type.Optional(personIds),
  distinct_ids: Type.Optional(distinctIds),
})
export const removeMembersSchema = Type.Object({
  person_id: Type.Optional(Type.Union([Type.Integer(), Type.String()], { description: 'Person id or uuid.' })),
  ...addMembersSchema.properties,
})

export function encodeCohort(cohort: Cohort, options: { isCalculating: boolean }): object {
  return encodeItem(cohortResource, cohort, {
    ...{ groups: [], is_calculating: options.isCalculating, errors_calculating: 0, experiment_set: [] },
  })
}

/** The fields that a body has, under the core's names; null means the default. */
export function decodeCohort(body: object): Partial<Cohort> {
  const fields = readFields(cohortResource, body as JsonObject, () => err(null))
  if (!fields.ok) throw new Error('no field that a body sets is a time')
  return fields.value
}

/** The members that a body names, by list, without absent or empty lists. `member-csv.ts` reads tables. */
export function decodeCohortMembers(body: {
  readonly persons?: readonly (number | string)[] | undefined
  readonly distinctIds?: readonly string[] | undefined
}): MemberIds[] {
  const lists: MemberIds[] = [
    { kind: 'person', ids: (body.persons ?? []).map(String) },
    { kind: 'distinct_id', ids: body.distinctIds ?? [] },
  ]
  return lists.filter(({ ids }) => ids.length > 0)
}

const namedIdsMax = 10_000

export function encodeMemberReport(report: {
  readonly changedCount: number
  readonly unchangedCount: number
  readonly unknownIds: readonly string[]
}): MemberReportJson {
  return {
    changed: report.changedCount,
    unchanged: report.unchangedCount,
    unknown_count: report.unknownIds.length,
    unknown: report.unknownIds.slice(0, namedIdsMax),
  }
}
