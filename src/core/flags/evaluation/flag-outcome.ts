// The outcome of evaluating one flag, as a closed union: its value, payload, reason and condition index.
// `wire/flags/decide-response.ts` spells them on the wire.

/** JSON text of a payload, or null for one that is stored as null. */
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

/** Why a flag could not be computed. Source: docs/wire/evaluation.md 5.15. */
export const unknownReasons = [
  'dependency_not_found_cohort',
  'dependency_cycle_cohort',
  'cohort_filters_parsing_error',
  'hash_key_override_error',
  'database_error',
  'database_unavailable',
  'timeout',
  'batch_evaluation_panicked',
] as const
export type UnknownReason = (typeof unknownReasons)[number]

/**
 * Reasons that are due to the definitions and stay until these change. The others end with the outage that they name.
 */
const lastingReasons: readonly UnknownReason[] = [
  'dependency_not_found_cohort',
  'dependency_cycle_cohort',
  'cohort_filters_parsing_error',
]

export function isPassing(reason: UnknownReason): boolean {
  return !lastingReasons.includes(reason)
}

export type FlagOutcome =
  /** An early access opt-out is off with a payload. */
  | {
      readonly kind: 'off'
      readonly reason: OffReason
      readonly conditionIndex: number | null
      readonly payload: PayloadText | undefined
    }
  | {
      readonly kind: 'on'
      readonly reason: OnReason
      readonly conditionIndex: number
      readonly payload: PayloadText | undefined
    }
  | {
      readonly kind: 'variant'
      readonly variantKey: string
      readonly reason: OnReason
      readonly conditionIndex: number | null
      readonly payload: PayloadText | undefined
    }
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
export function flagValue(outcome: FlagOutcome): boolean | string | undefined {
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
