// Whom a condition or a draft of a flag reaches. The blast radius has PostHog's form, with the names of today and the
// earlier ones; reach is ours. Source: docs/wire/private-api.md 4.1.

import Type, { type Static } from 'typebox'
import type { ReachCounts } from '#core/flags/evaluation/reach-tally.ts'
import { jsonObjectSchema, nullable } from '../shapes.ts'
import { updateFlagSchema } from './flags.ts'

export const blastRadiusBodySchema = Type.Object({
  condition: jsonObjectSchema('A condition set of a flag. Its percentage and variant change nothing.'),
  group_type_index: Type.Optional(
    nullable(Type.Integer({ minimum: 0, maximum: 4, description: 'Groups of this type are counted; else persons.' })),
  ),
})

const count = Type.Integer({ minimum: 0 })

export const blastRadiusSchema = Type.Object({
  affected: count,
  total: count,
  users_affected: Type.Integer({ minimum: 0, description: 'As `affected`.' }),
  total_users: Type.Integer({ minimum: 0, description: 'As `total`.' }),
})

export function encodeBlastRadius(affected: number, total: number): Static<typeof blastRadiusSchema> {
  return { affected, total, users_affected: affected, total_users: total }
}

const { version: _ofWritesAlone, ...definitionFields } = updateFlagSchema.properties

export const reachBodySchema = Type.Object({
  definition: Type.Object({
    id: Type.Optional(Type.Integer({ minimum: 1, description: 'The flag that is changed. Without it: a new one.' })),
    ...definitionFields,
  }),
  base: Type.Optional(
    nullable(Type.Integer({ minimum: 1, description: 'The version to compare with; the served one unless given.' })),
  ),
})

const value = Type.Union([Type.Boolean(), Type.String(), Type.Null()], {
  description:
    'false, true or a variant; null where the flag cannot be computed. Of version 2 also a text, and a number or an object as JSON text; no value is false.',
})

export const reachLineSchema = Type.Object(
  {
    done: Type.Boolean({ description: 'Only on the last line. Before it, counts are of those evaluated so far.' }),
    evaluated: count,
    of: count,
    population: Type.Union([Type.Literal('persons'), Type.Literal('groups')]),
    group_type_index: nullable(Type.Integer()),
    base_version: nullable(Type.Integer({ description: 'Null where there was no flag.' })),
    gained: count,
    lost: count,
    moved: count,
    unchanged: count,
    by_value: Type.Array(Type.Object({ value, before: count, after: count })),
    changes: Type.Array(Type.Object({ from: value, to: value, count })),
    other_changes: count,
    by_condition: Type.Array(count, {
      description: 'How many each condition set of the draft lets in, or each rule of one of version 2 decides.',
    }),
    split_buckets: Type.Integer({
      minimum: 0,
      description: 'Persons of whom another distinct id has another value of the draft.',
    }),
  },
  { description: 'A line of the answer, each a JSON object. An `error` with code and detail may end it instead.' },
)

export interface ReachOf {
  readonly population: { readonly kind: 'persons' } | { readonly kind: 'groups'; readonly typeIndex: number }
  readonly baseVersion: number | null
  /** How many there are, as far as known. */
  readonly of: number
}

export function encodeReach({ population, baseVersion, of }: ReachOf, counts: ReachCounts, done: boolean): string {
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

export function encodeReachError(code: string, detail: string): string {
  return `${JSON.stringify({ error: { code, detail } })}\n`
}
