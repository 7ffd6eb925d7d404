// The schemas of a flag's explanation. Source: ours, docs/operating/explain.md.

import Type, { type Static } from 'typebox'
import { leftOutReasons } from '#core/flags/evaluation/explained-flag.ts'
import { instantSchema, nullable } from '../shapes.ts'

const literals = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values] })

const reasonSchema = Type.Object({
  code: Type.String(),
  condition_index: nullable(Type.Integer()),
  description: Type.String(),
})

const typedValueSchema = Type.Unknown({
  description: 'A boolean or string; for version 2 also a number or object. Null: no value. Long values are truncated.',
})
const flagValueSchema = Type.Union([Type.Boolean(), Type.String(), Type.Null()])

/** Where a compared value was found: `distinct_id` is the request's own id, `flag` and `cohort` are their results. */
export const comparedSources = [
  'request',
  'geoip',
  'distinct_id',
  'group_key',
  'stored',
  'flag',
  'cohort',
  'absent',
] as const

export const comparedSchema = Type.Object({
  source: literals(comparedSources),
  value: Type.Unknown({ description: 'Null if absent or hidden; long values are truncated.' }),
  substitute: nullable(
    Type.String({
      description: 'Property read instead: `$os` for `$os_name`, `x` for `$initial_x`.',
    }),
  ),
  hidden: Type.Optional(
    Type.Literal(true, { description: 'true: the value is stored, but the key may not read persons or groups.' }),
  ),
})
export type ComparedJson = Static<typeof comparedSchema>

export const filterResults = ['passed', 'failed', 'not_evaluated', 'error'] as const

const leafFields = {
  type: Type.String(),
  key: Type.String(),
  operator: nullable(Type.String()),
  value: Type.Unknown({ description: 'Value of the filter; long values are truncated.' }),
  result: literals(filterResults),
  compared: nullable(comparedSchema),
  note: nullable(Type.String()),
}

/** An entry of a cohort's tree: a leaf, or another cohort that it refers to. */
export const cohortLeafSchema = Type.Object({
  ...leafFields,
  path: Type.String({ description: 'Path in the tree: `OR.0.AND.1`.' }),
  negated: Type.Boolean(),
})
export type CohortLeafJson = Static<typeof cohortLeafSchema>

export const explainedFilterSchema = Type.Object({
  ...leafFields,
  negated: Type.Optional(Type.Literal(true, { description: 'For rules: the result of the filter is negated.' })),
  filter_index: Type.Integer({ description: 'Index in `properties`; cohort filters are evaluated last.' }),
  cohort: Type.Optional(
    Type.Object({
      id: nullable(Type.Integer()),
      name: nullable(Type.String()),
      is_static: nullable(Type.Boolean()),
      leaves: Type.Array(cohortLeafSchema),
      leaves_left_out: Type.Integer(),
      hidden: Type.Optional(Type.Literal(true, { description: 'true: the key may not read cohorts.' })),
    }),
  ),
})
export type ExplainedFilterJson = Static<typeof explainedFilterSchema>

const hashedSchema = {
  identifier: nullable(Type.String({ description: 'Null for a `stored_override` if the key may not read persons.' })),
  identifier_source: nullable(
    Type.String({ description: 'group_key, distinct_id, device_id, anon_distinct_id or stored_override.' }),
  ),
  hash: nullable(Type.Number({ description: '0 to 1; null if nothing was hashed.' })),
}

export const conditionResults = [
  'matched',
  'no_condition_match',
  'out_of_rollout_bound',
  'no_group_type',
  'rollout_miss',
  'holdout',
  'experiment_paused',
  'failed',
  'not_reached',
] as const

export const explainedConditionSchema = Type.Object({
  condition_index: Type.Integer(),
  aggregation: Type.String({ description: '`person`, or the name of the hashed group type.' }),
  reached: Type.Boolean(),
  result: literals(conditionResults),
  note: nullable(Type.String()),
  filters: Type.Array(explainedFilterSchema, { description: 'In evaluation order.' }),
  filters_left_out: Type.Integer(),
  rollout: Type.Object({
    percentage: nullable(Type.Number({ description: 'Null or 100: everyone, without hashing.' })),
    ...hashedSchema,
    threshold: nullable(Type.Number({ description: 'Included if the hash is at most this value.' })),
    in: nullable(Type.Boolean()),
  }),
  variant: nullable(Type.String({ description: 'Variant that the condition set forces for all matches.' })),
  rule: Type.Optional(
    Type.Object(
      {
        id: Type.String(),
        rule_type: Type.String(),
        holdout: nullable(
          Type.Object({
            id: nullable(Type.Integer()),
            exclusion_percentage: Type.Number(),
            hash: nullable(Type.Number({ description: 'Null if nothing was hashed.' })),
            held_out: nullable(Type.Boolean()),
          }),
        ),
      },
      { description: 'For version 2 flags, which have rules instead of condition sets.' },
    ),
  ),
})
export type ExplainedConditionJson = Static<typeof explainedConditionSchema>

const dependencySchema = Type.Object({
  id: Type.Integer(),
  key: Type.String(),
  value: flagValueSchema,
  failed: Type.Boolean(),
  reason: nullable(reasonSchema),
})

export const explanationSchema = Type.Object({
  flag: Type.Object({ id: Type.Integer(), key: Type.String(), version: Type.Integer(), active: Type.Boolean() }),
  summary: Type.String(),
  answered: Type.Boolean({
    description: 'Whether /flags returns the flag. If not, value and reason are hypothetical.',
  }),
  left_out: nullable(literals(leftOutReasons)),
  value: typedValueSchema,
  payload: nullable(Type.String()),
  failed: Type.Boolean({ description: 'Whether the flag could not be computed; see `reason`.' }),
  reason: nullable(reasonSchema),
  evaluated_at: instantSchema,
  loaded: Type.Object({
    person: Type.String({ description: 'not_needed, left_aside, found, not_found, or an error code.' }),
    groups: Type.Array(Type.Object({ group_type: Type.String(), group_key: Type.String(), result: Type.String() })),
    geoip: Type.String({ description: 'not_needed, no_address, found or not_found.' }),
  }),
  enrollment: nullable(Type.Object({ property: Type.String(), decides: Type.Boolean(), compared: comparedSchema })),
  holdout: nullable(
    Type.Object({
      id: Type.String(),
      exclusion_percentage: Type.Number(),
      identifier: Type.String(),
      hash: nullable(Type.Number()),
      held_out: Type.Boolean(),
    }),
  ),
  conditions: Type.Array(explainedConditionSchema),
  conditions_left_out: Type.Integer(),
  variant: nullable(
    Type.Object({
      chosen: nullable(Type.String()),
      by: literals(['condition', 'hash', 'holdout', 'none']),
      ...hashedSchema,
      variants: Type.Array(
        Type.Object({ key: Type.String(), rollout_percentage: Type.Number(), from: Type.Number(), to: Type.Number() }),
      ),
    }),
  ),
  dependencies: Type.Array(dependencySchema, { description: 'Flags it depends on, in evaluation order.' }),
  dependencies_left_out: Type.Integer(),
  missing_dependencies: Type.Array(Type.Object({ id: Type.Integer(), tested_by: Type.String() })),
  dependency_cycle: nullable(Type.Array(Type.String())),
  problems: Type.Array(Type.String(), { description: 'Parts of the definitions that are invalid or never match.' }),
})
export type ExplanationJson = Static<typeof explanationSchema>
