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
const comparedSchema = Type.Object({
  source: literals(['request', 'geoip', 'distinct_id', 'group_key', 'stored', 'flag', 'cohort', 'absent']),
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

const leafFields = {
  type: Type.String(),
  key: Type.String(),
  operator: nullable(Type.String()),
  value: Type.Unknown({ description: 'Value of the filter; long values are truncated.' }),
  result: literals(['passed', 'failed', 'not_evaluated', 'error']),
  negated: Type.Optional(Type.Literal(true, { description: 'The result is that of the negated filter.' })),
  compared: nullable(comparedSchema),
  note: nullable(Type.String()),
}

/** An entry of a cohort's tree: a leaf, or another cohort that it refers to. */
const cohortLeafSchema = Type.Object({
  ...leafFields,
  path: Type.String({ description: 'Path in the tree: `OR.0.AND.1`.' }),
})
export type CohortLeafJson = Static<typeof cohortLeafSchema>

const explainedFilterSchema = Type.Object({
  ...leafFields,
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

const hashSchema = nullable(Type.Number({ description: '0 to 1; null if nothing was hashed.' }))

const holdoutSchema = nullable(
  Type.Object({
    id: Type.Union([Type.String(), Type.Integer(), Type.Null()]),
    exclusion_percentage: Type.Number(),
    identifier: nullable(Type.String()),
    hash: hashSchema,
    held_out: nullable(Type.Boolean({ description: 'Null if the holdout was not reached.' })),
  }),
)

const conditionResults = [
  'matched',
  'no_condition_match',
  'no_condition_match_behavioral_cohort',
  'out_of_rollout_bound',
  'no_group_type',
  'rollout_miss',
  'holdout',
  'experiment_paused',
  'failed',
  'not_reached',
] as const

const explainedConditionSchema = Type.Object({
  condition_index: Type.Integer(),
  aggregation: Type.String({ description: '`person`, or the name of the hashed group type.' }),
  result: literals(conditionResults),
  filters: Type.Array(explainedFilterSchema, { description: 'In evaluation order.' }),
  filters_left_out: Type.Integer(),
  bucketing: nullable(
    Type.Object(
      {
        by: literals(['group_key', 'distinct_id', 'device_id', 'anon_distinct_id', 'stored_override']),
        identifier: nullable(
          Type.String({ description: 'Null for a `stored_override` if the key may not read persons.' }),
        ),
      },
      { description: 'What was hashed for the rollout and the variant; null if nothing was.' },
    ),
  ),
  rollout: Type.Object({
    percentage: nullable(Type.Number({ description: 'Null or 100: everyone, without hashing.' })),
    hash: nullable(Type.Number({ description: 'Included if at most `percentage` / 100; null if nothing was hashed.' })),
  }),
  variant: nullable(Type.String({ description: 'Variant that the condition set forces for all matches.' })),
  rule: Type.Optional(
    Type.Object(
      { id: Type.String(), rule_type: Type.String(), holdout: holdoutSchema },
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
  left_out: Type.Union([literals(leftOutReasons), Type.Null()], {
    description: 'Why /flags does not return the flag: value and reason are then hypothetical. Null if it does.',
  }),
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
  holdout: holdoutSchema,
  conditions: Type.Array(explainedConditionSchema),
  conditions_left_out: Type.Integer(),
  variant: nullable(
    Type.Object({
      chosen: nullable(Type.String()),
      hash: nullable(Type.Number({ description: 'Null if no hash chose: the condition or the holdout did.' })),
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
