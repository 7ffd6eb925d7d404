// The answers to deleting or archiving many flags. `deleted` and `errors` with `id`, `key` and `reason` are as in
// PostHog; `used_by` is ours. Source: docs/wire/private-api.md §4.

import Type, { type Static } from 'typebox'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { readFlagRollout } from '#core/flags/definitions/flag-rollout.ts'
import { nullable } from '../shapes.ts'

export const bulkFlagsMax = 500

export const bulkFlagsSchema = Type.Object({
  ids: Type.Array(Type.Union([Type.Integer(), Type.String({ maxLength: 100 })]), {
    minItems: 1,
    maxItems: bulkFlagsMax,
    description: 'Flag ids, as numbers or digits in text.',
  }),
})

const retiredSchema = { id: Type.Integer(), key: Type.String() }
const errorSchema = Type.Object({
  id: Type.Union([Type.Integer(), Type.String()]),
  key: Type.Optional(Type.String()),
  reason: Type.String({ description: 'Human-readable explanation.' }),
  used_by: Type.Array(
    Type.Object({
      type: Type.String({ description: 'feature_flag, cohort, experiment, survey or early_access_feature.' }),
      id: Type.Union([Type.Integer(), Type.String()]),
      name: nullable(Type.String({ description: 'Null if the key lacks read access to it.' })),
    }),
  ),
})
export type BulkErrorJson = Static<typeof errorSchema>

export const bulkDeletedSchema = Type.Object({
  deleted: Type.Array(
    Type.Object({
      ...retiredSchema,
      rollout_state: Type.String({ description: 'fully_rolled_out, not_rolled_out or partial, at deletion.' }),
      active_variant: nullable(Type.String()),
    }),
  ),
  errors: Type.Array(errorSchema),
})
export const bulkArchivedSchema = Type.Object({
  archived: Type.Array(Type.Object(retiredSchema)),
  errors: Type.Array(errorSchema),
})

export function encodeRetiredFlag({ id, key }: Flag): Static<typeof bulkArchivedSchema>['archived'][number] {
  return { id, key }
}

export function encodeDeletedFlag(flag: Flag): Static<typeof bulkDeletedSchema>['deleted'][number] {
  const rollout = readFlagRollout(flag.filters)
  const states = { everybody: 'fully_rolled_out', nobody: 'not_rolled_out', some: 'partial', unreadable: 'partial' }
  return {
    ...encodeRetiredFlag(flag),
    rollout_state: states[rollout.kind],
    active_variant: rollout.kind === 'everybody' ? rollout.variant : null,
  }
}
