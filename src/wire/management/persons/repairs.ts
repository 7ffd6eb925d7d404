// Rebuilding and splitting persons. Splitting is in PostHog's words. Source: docs/wire/private-api.md 6.2.

import Type, { type Static } from 'typebox'
import { type PersonRepair, type RebuildRequest, repairedIdsMax } from '#core/persons/person-repair.ts'
import { authorSchema, encodeAuthor } from '../author.ts'
import { formatInstant, idSchema, instantSchema, nullable, uuidSchema } from '../shapes.ts'

const distinctIdSchema = Type.String({ minLength: 1, maxLength: 1_000 })

export const splitSchema = Type.Object({
  main_distinct_id: Type.Optional(
    Type.String({
      ...distinctIdSchema,
      description: 'Keeps the uuid, flag assignments and static cohorts. Default: the first of `distinct_ids`.',
    }),
  ),
})

export const splitAnswerSchema = Type.Object({ success: Type.Literal(true) })

export const rebuildSchema = Type.Object({
  uuids: Type.Optional(Type.Array(uuidSchema, { maxItems: repairedIdsMax, description: 'Uuids of persons.' })),
  distinct_ids: Type.Optional(
    Type.Array(distinctIdSchema, {
      maxItems: repairedIdsMax,
      description:
        'Distinct ids, also of persons that are missing. Each includes the ids that any event links with it.',
    }),
  ),
  all: Type.Optional(Type.Boolean({ description: 'All persons, instead of `uuids` and `distinct_ids`.' })),
  apply: Type.Optional(Type.Boolean({ description: 'Without it, the report says what would change.' })),
})

const count = Type.Integer({ minimum: 0 })

export const rebuildStatusSchema = Type.Object({
  id: idSchema,
  status: Type.Union([Type.Literal('pending'), Type.Literal('completed')]),
  apply: Type.Boolean(),
  created_at: instantSchema,
  created_by: authorSchema,
  completed_at: nullable(instantSchema),
  report: nullable(
    Type.Object({
      distinct_ids: Type.Integer({ minimum: 0, description: 'Distinct ids whose events were read.' }),
      changed: count,
      created: count,
      removed: Type.Integer({ minimum: 0, description: 'Persons that no stored event makes.' }),
      moved_distinct_ids: count,
      unreadable_distinct_ids: Type.Integer({
        minimum: 0,
        description: 'Unchanged, because their events are too many, or the event store could not read them.',
      }),
      persons: Type.Array(
        Type.Object({
          uuid: uuidSchema,
          change: Type.Union([Type.Literal('changed'), Type.Literal('created'), Type.Literal('removed')]),
          keys: Type.Array(Type.String(), { description: 'Properties and fields that change, at most 20.' }),
          distinct_ids: Type.Array(Type.String(), { description: 'Distinct ids that it gets or loses, at most 20.' }),
        }),
        { description: 'The first 100 of them.' },
      ),
    }),
  ),
})

export function encodeRebuild(rebuild: PersonRepair<RebuildRequest>): Static<typeof rebuildStatusSchema> {
  const { report, doneAtMs } = rebuild
  return {
    id: rebuild.id,
    status: doneAtMs === null ? 'pending' : 'completed',
    apply: rebuild.request.applies,
    created_at: formatInstant(rebuild.requestedAtMs),
    created_by: encodeAuthor(rebuild.requestedBy),
    completed_at: doneAtMs === null ? null : formatInstant(doneAtMs),
    report: report && {
      distinct_ids: report.idCount,
      changed: report.changedCount,
      created: report.createdCount,
      removed: report.removedCount,
      moved_distinct_ids: report.movedIdCount,
      unreadable_distinct_ids: report.unreadableIdCount,
      persons: report.samples.map(({ uuid, change, keys, distinctIds }) => {
        return { uuid, change, keys: [...keys], distinct_ids: [...distinctIds] }
      }),
    },
  }
}
