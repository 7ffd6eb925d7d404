// Compiles a flag document of version 2 into what an evaluation executes: predicates as tests, and every outcome that a
// rule can have. Source: docs/wire/evaluation.md 11.3.

import { computeVariantBounds } from '#core/flags/rollout/rollout.ts'
import type { JsonObject, JsonValue } from '../../json.ts'
import { readRules } from '../definitions/read-rules.ts'
import type { Predicate, Rule } from '../definitions/rules-document.ts'
import { toPropertyText } from '../match/fold-text.ts'
import { compilePropertyMatch, toNumber } from '../match/match-property.ts'
import { compileFlagRegex } from '../match/regex-dialect.ts'
import { compilePersonFilter, estimateFilterWeight, type FilterCompiler } from './compile-filter.ts'
import type { FilterTest } from './filter-test.ts'
import type { FlagOutcome, RuleFailure, RuleReason } from './flag-outcome.ts'
import { type PreparedOutcome, type PreparedOutcomes, ruleSlots } from './prepared-outcomes.ts'

export interface CompiledRules {
  /** In order; none when the document cannot be evaluated. */
  readonly rules: readonly CompiledRule[]
  /** When no rule decides: the default value, or why the document cannot be evaluated. */
  readonly otherwise: PreparedOutcome
  /** Whether a rule belongs to an experiment; true when that is not known. */
  readonly hasExperiment: boolean
  /** As `CompiledFlag.weight`. */
  readonly weight: number
}

export interface CompiledRule {
  readonly rule: Rule
  readonly tests: readonly FilterTest[]
  /** The outcomes by variant; a single outcome when the rule has no variants. */
  readonly values: readonly PreparedOutcome[]
  readonly variantBounds: readonly number[]
  readonly paused: PreparedOutcome
  readonly heldOut: PreparedOutcome
  readonly missed: PreparedOutcome
}

/** @param outcomes the flag's outcomes, used when the document cannot be evaluated. */
export function compileRules(filters: JsonObject, outcomes: PreparedOutcomes, compiler: FilterCompiler): CompiledRules {
  const document = readRules(filters)
  if (!document.ok) {
    const { path, message } = document.error
    compiler.problem(`fails for all users because its definition cannot be evaluated: ${path}: ${message}`)
    return { rules: [], otherwise: outcomes.unknown('unsupported_definition'), hasExperiment: true, weight: 1 }
  }
  const { rules, defaultValue } = document.value
  let slot = ruleSlots
  const prepareOutcome = (value: Value, reason: RuleReason, index: number | null, variantKey: string | null = null) => {
    return { ...toFlagOutcome(value, reason, index, variantKey), slot: slot++ }
  }
  const byDefault = toValueWithJson(defaultValue)
  const prepareRuleOutcomes = (rule: Rule, index: number): PreparedOutcome[] => {
    if (rule.type !== 'experiment') return [prepareOutcome(toValueWithJson(rule.value), 'targeting_match', index)]
    return rule.variants.map(({ key, value }) =>
      rule.experimentId === null
        ? prepareOutcome(toValueWithJson(value), 'targeting_match', index)
        : prepareOutcome(toValueWithJson(value), 'experiment_split', index, key),
    )
  }
  return {
    rules: rules.map((rule, index) => ({
      rule,
      tests: rule.predicates.map(predicate => compilePredicate(predicate, compiler)),
      values: prepareRuleOutcomes(rule, index),
      variantBounds: computeVariantBounds(rule.type === 'experiment' ? rule.variants.map(({ weight }) => weight) : []),
      paused: prepareOutcome(byDefault, 'experiment_paused', index),
      heldOut: prepareOutcome(byDefault, 'holdout', index),
      missed: prepareOutcome(byDefault, 'rollout_miss', index),
    })),
    otherwise: prepareOutcome(byDefault, 'no_rule_match', null),
    hasExperiment: rules.some(rule => rule.type === 'experiment' && rule.experimentId !== null),
    weight: rules
      .flatMap(rule => rule.predicates)
      .reduce((sum, { operator, value }) => sum + estimateFilterWeight({ operator, value: value ?? null }), 1),
  }
}

/** A value and its JSON text, made once however many outcomes have it. */
interface Value {
  readonly value: JsonValue
  readonly json: string
}

function toValueWithJson(value: JsonValue): Value {
  return { value, json: JSON.stringify(value) }
}

/** The outcome for clients that only know flags that are off, on or a variant. Source: docs/wire/evaluation.md 11.4. */
function toFlagOutcome(
  { value, json }: Value,
  reason: RuleReason,
  conditionIndex: number | null,
  variantKey: string | null,
): FlagOutcome {
  const decided = { reason, conditionIndex, typed: { value, variantKey } }
  if (value === null || value === false) return { kind: 'off', ...decided, payload: undefined }
  if (typeof value === 'string') return { kind: 'variant', variantKey: value, ...decided, payload: undefined }
  return { kind: 'on', ...decided, payload: value === true ? undefined : json }
}

/** Unlike in version 1, a comparison that cannot be made fails the flag, negated or not. */
function compilePredicate({ key, operator, value, negation }: Predicate, compiler: FilterCompiler): FilterTest {
  const filter = { key, operator, value: value ?? null }
  const match = compilePropertyMatch(operator, filter.value, compiler.settings)!
  if (match.problem !== undefined) compiler.problem(`fails where it reads "${key}": ${match.problem}`)
  const holds = compilePersonFilter(filter, match, compiler)
  const fault = createFaultFinder(operator, filter.value)
  if (fault === null) return negation ? (reader, decided) => !holds(reader, decided) : holds
  const personKey = compiler.personKeys.key(key)
  return (reader, decided) => {
    const own = reader.personValue(personKey)
    if (reader.failure === null) reader.failure = fault(own)
    return reader.failure === null && holds(reader, decided) !== negation
  }
}

type Fault = (own: JsonValue | undefined) => RuleFailure | null

/** Why a comparison with a property's value fails the flag; null for an operator that never fails a flag. */
function createFaultFinder(operator: string, filter: JsonValue): Fault | null {
  if (operator === 'regex' || operator === 'not_regex') {
    const regex = compileFlagRegex(String(filter))
    if (!regex.ok) return () => 'invalid_regular_expression'
    return own =>
      own !== undefined && regex.value.isTooLong(toPropertyText(own)) ? 'invalid_regular_expression' : null
  }
  if (!['gt', 'gte', 'lt', 'lte'].includes(operator)) return null
  const isComparable = toNumber(filter) !== null
  return own => (own === undefined || (isComparable && toNumber(own) !== null) ? null : 'invalid_property')
}
