// The text of one outcome of one flag in each shape of an answer. Every text starts with its comma, or is '' when the
// shape leaves the flag out. Source: docs/wire/evaluation.md 2.3, 2.4, 2.7, 5.5, 5.15.

import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import type { CompiledRules } from '#core/flags/evaluation/compile-rules.ts'
import {
  type FlagOutcome,
  flagValueOf,
  type OffReason,
  type OnReason,
  type RuleReason,
  ruleFailures,
  type UnknownReason,
} from '#core/flags/evaluation/flag-outcome.ts'

export interface FlagTexts {
  /**
   * For `featureFlags` in V1. Unknown flags are left out: clients merge answers, and a false would overwrite an earlier
   * value.
   */
  readonly value: string
  /** For `featureFlagPayloads`. */
  readonly payload: string
  /** For `flags` in V2. */
  readonly detail: string
  /** For `featureFlags` in D1, a list of the keys of enabled flags. */
  readonly enabledKey: string
  /** For `featureFlags` in D2, the values of enabled flags. */
  readonly enabledValue: string
}

export function prepareFlagJson(flag: CompiledFlag, outcome: FlagOutcome): FlagTexts {
  const key = JSON.stringify(flag.key)
  const value = flagValueOf(outcome)
  const isEnabled = value !== undefined && value !== false
  const valueText = value === undefined ? '' : `,${key}:${JSON.stringify(value)}`
  return {
    value: valueText,
    payload: typeof outcome.payload === 'string' ? `,${key}:${JSON.stringify(outcome.payload)}` : '',
    detail: `,${key}:${JSON.stringify(buildFlagDetail(flag, outcome))}`,
    enabledKey: isEnabled ? `,${key}` : '',
    enabledValue: isEnabled ? valueText : '',
  }
}

/** A flag's entry in V2, without `conditions`. Source: docs/wire/evaluation.md 2.3. */
export function buildFlagDetail(flag: CompiledFlag, outcome: FlagOutcome) {
  const value = flagValueOf(outcome)
  return {
    key: flag.key,
    enabled: value !== undefined && value !== false,
    variant: typeof value === 'string' ? value : null,
    failed: outcome.kind === 'unknown' ? true : undefined,
    reason: {
      code: reasonCodeOf(outcome.reason),
      condition_index: outcome.conditionIndex,
      description: describeReason(outcome),
    },
    metadata: {
      id: flag.id,
      version: flag.version,
      description: null,
      payload: outcome.payload ?? null,
      has_experiment: flag.hasExperiment,
    },
  }
}

/** A flag's entry in V3, without `conditions`. Fields that do not apply are absent. Source: docs/wire/evaluation.md 2.9. */
export function buildFlagRecord(flag: CompiledFlag, outcome: FlagOutcome): object {
  const { key, failed, reason, metadata } = buildFlagDetail(flag, outcome)
  const value = flagValueOf(outcome) ?? null
  const record = { key, value, failed, reason, metadata: { ...metadata, config_version: 1 } }
  if (flag.rules !== null) return addRuleFields(record, flag.rules, outcome)
  if (outcome.kind !== 'variant') return record
  const isForced = outcome.reason === 'condition_match' && flag.sets[outcome.conditionIndex ?? -1]!.variantIndex >= 0
  const variant = { variant_key: outcome.variantKey, ...(isForced ? { forced_variant: true } : {}) }
  return { ...record, metadata: { ...record.metadata, ...variant } }
}

type FlagRecord = Pick<ReturnType<typeof buildFlagDetail>, 'key' | 'failed' | 'reason' | 'metadata'>

function addRuleFields(record: FlagRecord, { rules }: CompiledRules, outcome: FlagOutcome): object {
  const metadata = { ...record.metadata, config_version: 2, payload: null }
  if (outcome.kind === 'unknown' || outcome.typed === undefined) return { ...record, value: null, metadata }
  const { value, variantKey } = outcome.typed
  const rule = rules[outcome.conditionIndex ?? -1]?.rule
  if (rule === undefined) return { ...record, value, metadata }
  const experiment = rule.type === 'experiment' && rule.experimentId !== null ? rule : null
  return {
    ...record,
    value,
    metadata: {
      ...metadata,
      rule_type: rule.type,
      rule_id: rule.id,
      ...(variantKey === null ? {} : { variant_key: variantKey }),
      ...(experiment === null ? {} : { experiment_id: experiment.experimentId }),
      ...(experiment !== null && outcome.reason === 'holdout' ? { holdout_id: experiment.holdout?.id } : {}),
    },
  }
}

/** Some of our reasons share a code and differ only in their description. */
export function reasonCodeOf(reason: OnReason | OffReason | RuleReason | UnknownReason): string {
  if ((ruleFailures as readonly string[]).includes(reason)) return 'error'
  return reason.startsWith('no_condition_match') ? 'no_condition_match' : reason
}

/** The reason as one sentence. Source: docs/wire/evaluation.md 5.5, 5.15, 11.3, 11.5. */
export function describeReason({ reason, conditionIndex }: Pick<FlagOutcome, 'reason' | 'conditionIndex'>): string {
  switch (reason) {
    case 'condition_match':
      return `Matched condition set ${(conditionIndex ?? 0) + 1}`
    case 'super_condition_value':
      return 'Super condition value'
    case 'holdout_condition_value':
      return 'Holdout condition value'
    case 'out_of_rollout_bound':
      return 'Out of rollout bound'
    case 'no_condition_match':
      return 'No matching condition set'
    case 'no_condition_match_groups_not_sent':
      return 'No matching condition set (group conditions were not evaluated because no group type was provided)'
    case 'no_condition_match_behavioral_cohort':
      return (
        'This condition targets a behavioral or realtime cohort. Its membership is not fully evaluated here, ' +
        "so this result can differ from the cohort's member list."
      )
    case 'no_group_type':
      return 'No group type'
    case 'missing_dependency':
      return 'Flag cannot be evaluated due to missing dependency'
    case 'dependency_not_found_cohort':
      return 'Cohort dependency not found'
    case 'dependency_cycle_cohort':
      return 'Cohort dependency cycle detected'
    case 'cohort_filters_parsing_error':
      return 'Failed to parse cohort filters'
    case 'hash_key_override_error':
      return 'The overrides of experience continuity could not be read'
    case 'database_error':
      return 'Database connection error during evaluation'
    case 'database_unavailable':
      return 'The state store is unavailable'
    case 'timeout':
      return 'Timeout: state store'
    case 'batch_evaluation_panicked':
      return 'The evaluation of this flag failed'
    case 'targeting_match':
    case 'experiment_split':
      return `Matched rule ${(conditionIndex ?? 0) + 1}`
    case 'experiment_paused':
      return `Rule ${(conditionIndex ?? 0) + 1} is paused`
    case 'holdout':
      return `Rule ${(conditionIndex ?? 0) + 1} holdout`
    case 'rollout_miss':
      return `Rule ${(conditionIndex ?? 0) + 1} rollout miss`
    case 'no_rule_match':
      return 'No rule matched'
    case 'unsupported_definition':
      return 'Unsupported definition'
    case 'invalid_property':
      return 'Invalid property'
    case 'invalid_regular_expression':
      return 'Invalid regular expression'
    case 'missing_properties':
      return 'Missing properties'
    default:
      return reason satisfies never
  }
}
