// Whom a condition or a draft of a flag reaches. The blast radius has PostHog's form, with its current and its earlier
// names; reach is ours. Source: docs/wire/private-api.md 4.1.

import Type, { type Static } from 'typebox'
import type { ReachCounts } from '#core/flags/evaluation/reach-tally.ts'
import { jsonObjectSchema, nullable } from '../shapes.ts'
import { updateFlagSchema } from './flags.ts'

export const blastRadiusBodySchema = Type.Object({
  condition: jsonObjectSchema('Condition set of a flag. Its percentage and variant are ignored.'),
  group_type_index: Type.Optional(
    nullable(Type.Integer({ minimum: 0, maximum: 4, description: 'Count groups of this type instead of persons.' })),
  ),
})

const count = Type.Integer({ minimum: 0 })

export const blastRadiusSchema = Type.Object({
  affected: count,
  total: count,
  users_affected: Type.Integer({ minimum: 0, description: 'Alias of `affected`.' }),
  total_users: Type.Integer({ minimum: 0, description: 'Alias of `total`.' }),
})

export function encodeBlastRadius(affected: number, total: number): Static<typeof blastRadiusSchema> {
  return { affected, total, users_affected: affected, total_users: total }
}

const { version: _ofWritesAlone, ...definitionFields } = updateFlagSchema.properties

export const reachBodySchema = Type.Object({
  definition: Type.Object({
    id: Type.Optional(Type.Integer({ minimum: 1, description: 'Id of the flag to change. If omitted: a new flag.' })),
    ...definitionFields,
  }),
  base: Type.Optional(
    nullable(Type.Integer({ minimum: 1, description: 'Version to compare with. Default: the version being served.' })),
  ),
})

const value = Type.Union([Type.Boolean(), Type.String(), Type.Null()], {
  description:
    'false, true or a variant key; null if the flag cannot be computed. For version 2 also a string, or JSON text for a number or object; a missing value counts as false.',
})

export const reachLineSchema = Type.Object(
  {
    done: Type.Boolean({
      description: 'true on the last line only; earlier lines count the subjects evaluated so far.',
    }),
    evaluated: count,
    of: count,
    population: Type.Union([Type.Literal('persons'), Type.Literal('groups')]),
    group_type_index: nullable(Type.Integer()),
    base_version: nullable(Type.Integer({ description: 'Null for a new flag.' })),
    gained: count,
    lost: count,
    moved: count,
    unchanged: count,
    by_value: Type.Array(Type.Object({ value, before: count, after: count })),
    changes: Type.Array(Type.Object({ from: value, to: value, count })),
    other_changes: count,
    by_condition: Type.Array(count, {
      description: 'Subjects per condition set of the draft, or per rule for version 2.',
    }),
    split_buckets: Type.Integer({
      minimum: 0,
      description: 'Persons whose distinct ids get different values of the draft.',
    }),
  },
  {
    description:
      'One line of the response, a JSON object. On failure, the last line is an `error` with code and detail.',
  },
)

export interface ReachTarget {
  readonly population: { readonly kind: 'persons' } | { readonly kind: 'groups'; readonly typeIndex: number }
  readonly baseVersion: number | null
  /** The size of the population, as far as known. */
  readonly of: number
}

export function encodeAffectedCounts(
  { population, baseVersion, of }: ReachTarget,
  counts: ReachCounts,
  done: boolean,
): string {
  const line: Static<typeof reachLineSchema> = {
    done,
    evaluated: counts.evaluated,
    of: done ? counts.evaluated : Math.max(of, counts.evaluated),
    population: population.kind,
    group_type_index: population.kind === 'groups' ? population.typeIndex : null,
    base_version: baseVersion,
    gained: counts.gained,
    lost: counts.lost,
    moved: counts.moved,
    unchanged: counts.unchanged,
    by_value: counts.values.map(({ value, before, after }) => ({ value, before, after })),
    changes: counts.changes.map(({ from, to, count }) => ({ from, to, count })),
    other_changes: counts.otherChanges,
    by_condition: [...counts.byCondition],
    split_buckets: counts.split,
  }
  return `${JSON.stringify(line)}\n`
}

export function encodeAffectedCountError(code: string, detail: string): string {
  return `${JSON.stringify({ error: { code, detail } })}\n`
}
