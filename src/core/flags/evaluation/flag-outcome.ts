// The outcome of evaluating one flag, as a closed union: its value, payload, reason and condition index.
// `wire/flags/decide-response.ts` writes it into responses.

import type { JsonValue } from '../../json.ts'

/** JSON text of a payload, or null for a payload that is stored as null. */
export type PayloadText = string | null

/** Why a flag is on. Source: docs/wire/evaluation.md 5.5. */
export const onReasons = ['condition_match', 'super_condition_value', 'holdout_condition_value'] as const
export type OnReason = (typeof onReasons)[number]

/**
 * Why a flag is off, by ascending rank: the most telling reason wins. The two variants of `no_condition_match` share
 * its rank and differ only in their description. Source: docs/wire/evaluation.md 5.5.
 */
export const offReasons = [
  'missing_dependency',
  'no_group_type',
  'no_condition_match',
  'no_condition_match_groups_not_sent',
  'no_condition_match_behavioral_cohort',
  'out_of_rollout_bound',
  'super_condition_value',
] as const
export type OffReason = (typeof offReasons)[number]

/** Why a document of version 2 gives its value. Source: docs/wire/evaluation.md 11.3. */
export const ruleReasons = [
  'targeting_match',
  'experiment_split',
  'experiment_paused',
  'holdout',
  'rollout_miss',
  'no_rule_match',
] as const
export type RuleReason = (typeof ruleReasons)[number]

/** What makes a flag of version 2 fail without affecting other flags. Source: docs/wire/evaluation.md 11.5. */
export const ruleFailures = [
  'unsupported_definition',
  'invalid_property',
  'invalid_regular_expression',
  'missing_properties',
] as const
export type RuleFailure = (typeof ruleFailures)[number]

/** Why a flag could not be computed. Source: docs/wire/evaluation.md 5.15, 11.5. */
export const unknownReasons = [
  'dependency_not_found_cohort',
  'dependency_cycle_cohort',
  'cohort_filters_parsing_error',
  'hash_key_override_error',
  'database_error',
  'database_unavailable',
  'timeout',
  'batch_evaluation_panicked',
  ...ruleFailures,
] as const
export type UnknownReason = (typeof unknownReasons)[number]

/**
 * Reasons that are due to the definitions and stay until the definitions change. All other reasons end with the outage that
 * they name.
 */
const lastingReasons: readonly UnknownReason[] = [
  'dependency_not_found_cohort',
  'dependency_cycle_cohort',
  'cohort_filters_parsing_error',
]

export function isTransientReason(reason: UnknownReason): boolean {
  return !lastingReasons.includes(reason)
}

/** The value of a version 2 flag. `kind` and `payload` describe it only to clients that do not know its type. */
export interface TypedValue {
  /** Null when the flag has no value. */
  readonly value: JsonValue
  /** The variant that an experiment served; null without a linked experiment. */
  readonly variantKey: string | null
}

interface Decided<Reason> {
  readonly reason: Reason | RuleReason
  /** Index of the condition set, or of the rule, that decided; null when none did. */
  readonly conditionIndex: number | null
  readonly payload: PayloadText | undefined
  /** Absent for version 1. */
  readonly typed?: TypedValue
}

export type FlagOutcome =
  /** For an early access opt-out, `off` comes with a payload. */
  | ({ readonly kind: 'off' } & Decided<OffReason>)
  | ({ readonly kind: 'on' } & Decided<OnReason>)
  | ({ readonly kind: 'variant'; readonly variantKey: string } & Decided<OnReason>)
  /** Sets errorsWhileComputingFlags. */
  | {
      readonly kind: 'unknown'
      readonly reason: UnknownReason
      readonly conditionIndex: null
      readonly payload: undefined
    }

/**
 * Undefined for an unknown flag, which `featureFlags` leaves out and v=2 answers with `enabled: false, failed: true`.
 */
export function flagValueOf(outcome: FlagOutcome): boolean | string | undefined {
  switch (outcome.kind) {
    case 'off':
      return false
    case 'on':
      return true
    case 'variant':
      return outcome.variantKey
    case 'unknown':
      return undefined
    default:
      return outcome satisfies never
  }
}
