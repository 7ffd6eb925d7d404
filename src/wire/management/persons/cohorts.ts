// Cohorts, the answer to a write of members, and the ids that name members. Source: PostHog's public REST API;
// `version`, `warnings` and `members` are ours.

import Type, { type Static } from 'typebox'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { authorSchema, encodeAuthor } from '../author.ts'
import { flagWarningSchema } from '../flags/flags.ts'
import { instant, instantSchema, jsonObjectSchema, nullable } from '../shapes.ts'

const filtersDescription =
  'Of a cohort that is not static: `{"properties": {"type": "OR" | "AND", "values": [filters and groups of filters]}}`.'

export const cohortSchema = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  description: Type.String(),
  groups: Type.Array(Type.Unknown(), { description: 'Older form of `filters`; always empty.' }),
  filters: jsonObjectSchema(filtersDescription),
  is_static: Type.Boolean(),
  deleted: Type.Boolean(),
  version: Type.Integer(),
  count: nullable(Type.Integer({ description: 'Number of members as of `last_calculation`; null if never counted.' })),
  is_calculating: Type.Boolean({ description: 'Whether this process is counting the members.' }),
  last_calculation: nullable(instantSchema),
  errors_calculating: Type.Integer(),
  created_at: instantSchema,
  updated_at: instantSchema,
  created_by: authorSchema,
  experiment_set: Type.Array(Type.Integer()),
})
export type CohortJson = Static<typeof cohortSchema>

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

const optionalCohortFields = {
  name: Type.Optional(nullable(Type.String({ maxLength: 400 }))),
  description: Type.Optional(nullable(Type.String({ maxLength: 1_000 }))),
  is_static: Type.Optional(Type.Boolean()),
  filters: Type.Optional(nullable(jsonObjectSchema(filtersDescription))),
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

export const createCohortSchema = Type.Object(optionalCohortFields)
export const updateCohortSchema = Type.Object({
  ...optionalCohortFields,
  deleted: Type.Optional(Type.Boolean()),
  version: Type.Optional(
    nullable(Type.Integer({ description: 'Version the change is based on. 409 if it is no longer current.' })),
  ),
})
export type UpdateCohortJson = Static<typeof updateCohortSchema>

export const addMembersSchema = Type.Object({
  person_ids: Type.Optional(personIds),
  distinct_ids: Type.Optional(distinctIds),
})
export const removeMembersSchema = Type.Object({
  person_id: Type.Optional(Type.Union([Type.Integer(), Type.String()], { description: 'Person id or uuid.' })),
  ...addMembersSchema.properties,
})

export function encodeCohort(cohort: Cohort, options: { isCalculating: boolean }): CohortJson {
  return {
    id: cohort.id,
    name: cohort.name,
    description: cohort.description,
    groups: [],
    filters: cohort.filters,
    is_static: cohort.isStatic,
    deleted: cohort.deleted,
    version: cohort.version,
    count: cohort.memberCount,
    is_calculating: options.isCalculating,
    last_calculation: cohort.countedAtMs === null ? null : instant(cohort.countedAtMs),
    errors_calculating: 0,
    created_at: instant(cohort.createdAtMs),
    updated_at: instant(cohort.updatedAtMs),
    created_by: encodeAuthor(cohort.createdBy),
    experiment_set: [],
  }
}

/** The fields that a body has, under the core's names; null means the default. */
export function decodeCohort(body: UpdateCohortJson): Partial<Cohort> {
  return {
    ...(body.name === undefined ? {} : { name: body.name ?? '' }),
    ...(body.description === undefined ? {} : { description: body.description ?? '' }),
    ...(body.is_static === undefined ? {} : { isStatic: body.is_static }),
    ...(body.filters === undefined ? {} : { filters: body.filters ?? {} }),
    ...(body.deleted === undefined ? {} : { deleted: body.deleted }),
  }
}

/** The members that a body names, by list, without absent or empty lists. `member-csv.ts` reads tables. */
export function decodeMembers(body: {
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
