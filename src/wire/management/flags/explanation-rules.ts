// The rules of an explanation, in the form of condition sets: the checked predicates, the hashed value and the result.

import type { ExperimentRule, PercentageRollout, Predicate } from '#core/flags/definitions/rules-document.ts'
import type { CompiledRule, CompiledRules } from '#core/flags/evaluation/compile-rules.ts'
import type { FlagTrace, TracedSet } from '#core/flags/evaluation/evaluation-trace.ts'
import type { ExplainedFlag } from '#core/flags/evaluation/explained-flag.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'
import { isInRollout } from '#core/flags/rollout/rollout.ts'
import { type Budget, type ExplanationView, explainFilter, truncateText } from './explanation-filters.ts'
import type { ExplainedConditionJson, ExplainedFilterJson, ExplanationJson } from './explanation-shapes.ts'

type RulesJson = Pick<ExplanationJson, 'conditions' | 'conditions_left_out' | 'variant'>

/** There are at most 100 rules, so all are shown. @param budget bounds the predicates of all of them. */
export function explainRules(
  explained: ExplainedFlag,
  { rules }: CompiledRules,
  trace: FlagTrace | undefined,
  outcome: PreparedOutcome | undefined,
  view: ExplanationView,
  budget: Budget,
): RulesJson {
  const decided = rules[outcome?.conditionIndex ?? -1]
  return {
    conditions: rules.map((rule, index) => explainRule(explained, rule, index, trace?.sets[index], view, budget)),
    conditions_left_out: 0,
    variant: decided === undefined ? null : explainVariant(explained, decided, trace, outcome),
  }
}

function explainRule(
  explained: ExplainedFlag,
  { rule }: CompiledRule,
  index: number,
  traced: TracedSet | undefined,
  view: ExplanationView,
  budget: Budget,
): ExplainedConditionJson {
  const filters = explainPredicates(explained, rule.predicates, traced, view, budget)
  return {
    condition_index: index,
    aggregation: 'person',
    reached: traced !== undefined,
    result: resultOf(traced),
    note: noteOf(rule, traced, explained),
    filters,
    filters_left_out: rule.predicates.length - filters.length,
    rollout: rule.type === 'targeted_release' ? noRollout : explainRollout(rule, traced),
    variant: null,
    rule: { id: rule.id, rule_type: rule.type, holdout: rule.type === 'experiment' ? holdoutOf(rule, traced) : null },
  }
}

function explainPredicates(
  explained: ExplainedFlag,
  predicates: readonly Predicate[],
  traced: TracedSet | undefined,
  view: ExplanationView,
  budget: Budget,
): ExplainedFilterJson[] {
  const shown = predicates.slice(0, Math.max(0, budget.filters))
  budget.filters -= shown.length
  return shown.map(({ key, operator, value, negation }, place) => {
    const filter = { type: 'person', key, operator, value: value ?? null, groupTypeIndex: null } as const
    const leaf = explainFilter(explained, view, filter, null, traced?.tests[place], negation)
    return { ...leaf, filter_index: place, ...(negation ? { negated: true as const } : {}) }
  })
}

function resultOf(traced: TracedSet | undefined): ExplainedConditionJson['result'] {
  if (traced === undefined) return 'not_reached'
  if (traced.missed === undefined) return 'failed'
  return traced.missed === null ? 'matched' : (traced.missed as ExplainedConditionJson['result'])
}

function noteOf(
  rule: CompiledRule['rule'],
  traced: TracedSet | undefined,
  { subject }: ExplainedFlag,
): ExplainedConditionJson['note'] {
  if (traced?.missed !== 'rollout_miss' || rule.type === 'targeted_release') return null
  const emptyIdNote = subject.distinctId === '' ? 'an empty distinct id is excluded from every rollout; ' : ''
  return `${emptyIdNote}${rule.continuesOnMiss ? 'the next rule is evaluated' : 'the default value is served'}`
}

const noRollout = { percentage: null, identifier: null, identifier_source: null, hash: null, threshold: null, in: null }

function explainRollout(
  { rolloutPercentage }: PercentageRollout | ExperimentRule,
  traced: TracedSet | undefined,
): ExplainedConditionJson['rollout'] {
  const hash = traced?.rolloutHash01 ?? null
  const unhashed = traced?.missed === null ? true : traced?.missed === 'rollout_miss' ? false : null
  return {
    percentage: rolloutPercentage,
    identifier: hash === null ? null : truncateText(traced!.bucketing!.identifier),
    identifier_source: hash === null ? null : traced!.bucketing!.by,
    hash,
    threshold: rolloutPercentage / 100,
    in: hash === null ? unhashed : isInRollout(hash, rolloutPercentage),
  }
}

function holdoutOf(
  { holdout }: ExperimentRule,
  traced: TracedSet | undefined,
): NonNullable<ExplainedConditionJson['rule']>['holdout'] {
  if (holdout === null) return null
  const asked = traced?.holdout ?? null
  return {
    id: holdout.id,
    exclusion_percentage: holdout.exclusionPercentage,
    hash: asked?.hash01 ?? null,
    held_out: asked?.isHeldOut ?? null,
  }
}

function explainVariant(
  { subject }: ExplainedFlag,
  { rule, values, variantBounds }: CompiledRule,
  trace: FlagTrace | undefined,
  outcome: PreparedOutcome | undefined,
): ExplanationJson['variant'] {
  const served = outcome === undefined ? -1 : values.indexOf(outcome)
  if (rule.type !== 'experiment' || served < 0) return null
  return {
    chosen: rule.variants[served]!.key,
    by: 'hash',
    identifier: truncateText(subject.distinctId),
    identifier_source: 'distinct_id',
    hash: trace?.variantHash01 ?? null,
    variants: rule.variants.map(({ key, weight }, index) => ({
      ...{ key, rollout_percentage: weight },
      ...{ from: variantBounds[index - 1] ?? 0, to: variantBounds[index]! },
    })),
  }
}
