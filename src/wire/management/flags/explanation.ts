// The explanation of one flag for one subject: its value and the reason, step by step, from the evaluator's trace. Its
// size is bounded whatever is defined. Source: ours, docs/operating/explain.md.

import { readFilters, type StoredFilters } from '#core/flags/definitions/flag-filters.ts'
import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import { usableGroupKey } from '#core/flags/evaluation/evaluation-subject.ts'
import type { ExplainedFlag, LeftOutReason } from '#core/flags/evaluation/explained-flag.ts'
import { type FlagOutcome, flagValue } from '#core/flags/evaluation/flag-outcome.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'
import { dependencyCycle, missingDependencies } from '#core/flags/evaluation/project-to-explain.ts'
import { type JsonValue, ownValue } from '#core/json.ts'
import { reasonCode, reasonDescription } from '#wire/flags/flag-texts.ts'
import { instant } from '../shapes.ts'
import { explainConditions, filterCountMax } from './explanation-conditions.ts'
import {
  describeFilter,
  type ExplanationView,
  encodeIdentifier,
  encodeRead,
  truncateText,
  truncateValue,
} from './explanation-filters.ts'
import { explainRules } from './explanation-rules.ts'
import type { ExplanationJson } from './explanation-shapes.ts'

const dependencyCountMax = 100
const problemCountMax = 20
const variantCountMax = 200

export function encodeExplanation(explained: ExplainedFlag, view: ExplanationView): ExplanationJson {
  const { stored, flag, evaluation, position, subject, leftOut } = explained
  const outcome = flag === undefined ? undefined : evaluation.outcomes[position]
  const reason = outcome === undefined ? null : encodeReason(outcome)
  const value = typedValueOf(outcome)
  const steps = flag === undefined ? nothingEvaluated : encodeSteps(explained, flag, outcome, view)
  return {
    flag: { id: stored.id, key: stored.key, version: stored.version, active: stored.active },
    summary: summaryOf(explained, outcome, reason, noMatchCodes.includes(reason?.code ?? '') ? failedAt(steps) : ''),
    answered: leftOut === null,
    left_out: leftOut,
    value,
    payload: stored.hasEncryptedPayloads ? null : (outcome?.payload ?? null),
    failed: outcome?.kind === 'unknown',
    reason,
    evaluated_at: instant(subject.nowMs),
    loaded: encodeLoaded(explained),
    ...steps,
    ...encodeDependencies(explained),
    problems: explained.project.problems.slice(0, problemCountMax).map(({ flagKey, message }) => {
      return flagKey === stored.key ? message : `${truncateText(flagKey)}: ${message}`
    }),
  }
}

const noMatchCodes = ['no_condition_match', 'no_rule_match']

function typedValueOf(outcome: FlagOutcome | undefined): JsonValue {
  if (outcome === undefined || outcome.kind === 'unknown') return null
  return outcome.typed === undefined ? (flagValue(outcome) ?? null) : truncateValue(outcome.typed.value)
}

const nothingEvaluated: Steps = {
  enrollment: null,
  holdout: null,
  conditions: [],
  conditions_left_out: 0,
  variant: null,
}

function encodeReason(outcome: FlagOutcome): NonNullable<ExplanationJson['reason']> {
  const code = reasonCode(outcome.reason)
  return { code, condition_index: outcome.conditionIndex, description: reasonDescription(outcome) }
}

const leftOutTexts: Record<LeftOutReason, string> = {
  deleted: 'is deleted and therefore not served',
  inactive: 'is inactive and therefore not served',
  encrypted_payloads: 'has encrypted payloads and is therefore not served as a flag',
  unreadable: 'is not served because its definition is invalid',
  dependency_cycle: 'is not served because the flags it depends on form a cycle',
  filtered_out: 'is not served to this caller because of its runtime or evaluation contexts',
}

function summaryOf(
  { stored, leftOut, project, request }: ExplainedFlag,
  outcome: FlagOutcome | undefined,
  reason: ExplanationJson['reason'],
  details: string,
): string {
  const name = truncateText(stored.key)
  const because = reason === null ? '' : `: ${reason.description}${details}`
  const value = typedValueOf(outcome)
  const isUnknown = outcome === undefined || outcome.kind === 'unknown'
  const result = isUnknown
    ? 'unknown because it could not be computed'
    : value === null
      ? "without a value, so the caller's default applies,"
      : JSON.stringify(value)
  if (leftOut === null) return `${name} is ${result} for ${truncateText(request.distinctId ?? '')}${because}.`
  const problem = project.problems.find(({ flagId }) => flagId === stored.id)
  if (leftOut === 'unreadable') return `${name} ${leftOutTexts.unreadable}: ${problem?.message ?? 'unknown'}.`
  const wouldBe = reason === null ? '' : `; it would be ${result}${because}`
  return `${name} ${leftOutTexts[leftOut]}${wouldBe}.`
}

const failedSetsShown = 3

/** The filter at which each set failed. */
function failedAt({ conditions }: Steps): string {
  const failed = conditions.flatMap(({ condition_index, filters, rule }) => {
    const at = filters.find(({ result }) => result === 'failed' || result === 'error')
    const name = rule === undefined ? 'set' : 'rule'
    return at === undefined ? [] : [`${name} ${condition_index + 1} failed at: ${describeFilter(at)}`]
  })
  const more = failed.length > failedSetsShown ? `; and ${failed.length - failedSetsShown} more` : ''
  return failed.length === 0 ? '' : ` (${failed.slice(0, failedSetsShown).join('; ')}${more})`
}

type Steps = Pick<ExplanationJson, 'enrollment' | 'holdout' | 'conditions' | 'conditions_left_out' | 'variant'>

function encodeSteps(
  explained: ExplainedFlag,
  flag: CompiledFlag,
  outcome: PreparedOutcome | undefined,
  view: ExplanationView,
): Steps {
  const { rules } = flag
  if (rules !== null) {
    const traced = explained.trace.of(flag)
    const steps = explainRules(explained, rules, traced, outcome, view, { filters: filterCountMax })
    return { enrollment: null, holdout: null, ...steps }
  }
  const definition = readFilters(explained.project.definitions.flags.find(({ id }) => id === flag.id)!.filters)
  const traced = explained.trace.of(flag)
  return {
    enrollment: encodeEnrollment(explained, flag, view),
    holdout:
      traced?.holdout == null
        ? null
        : {
            id: definition.holdout?.id ?? '',
            exclusion_percentage: flag.holdoutPercentage ?? 0,
            identifier: truncateText(traced.holdout.identifier),
            hash: traced.holdout.hash01,
            held_out: traced.holdout.isHeldOut,
          },
    ...explainConditions(explained, flag, definition, view, outcome?.conditionIndex ?? null),
    variant: encodeVariant(explained, flag, definition, outcome, view),
  }
}

function encodeEnrollment(
  { trace }: ExplainedFlag,
  flag: CompiledFlag,
  view: ExplanationView,
): ExplanationJson['enrollment'] {
  const enrollment = trace.of(flag)?.enrollment
  if (flag.enrollmentKey === null || enrollment == null) return null
  const property = flag.enrollmentKey.name
  const compared = encodeRead(trace.personReadOf(property), view.showsPersons)
  return { property: truncateText(property), decides: enrollment.value !== undefined, compared }
}

function encodeVariant(
  { trace }: ExplainedFlag,
  flag: CompiledFlag,
  { variants }: StoredFilters,
  outcome: FlagOutcome | undefined,
  view: ExplanationView,
): ExplanationJson['variant'] {
  const chosen = outcome?.kind === 'variant' ? outcome.variantKey : null
  if (variants.length === 0 && chosen === null) return null
  const traced = trace.of(flag)
  const hash = traced?.variantHash01 ?? null
  const bucketing = hash === null ? null : (traced?.sets[outcome?.conditionIndex ?? -1]?.bucketing ?? null)
  const by =
    chosen === null
      ? 'none'
      : outcome?.reason === 'holdout_condition_value'
        ? 'holdout'
        : hash === null
          ? 'condition'
          : 'hash'
  return {
    chosen: chosen === null ? null : truncateText(chosen),
    by,
    identifier: encodeIdentifier(bucketing, view),
    identifier_source: bucketing?.by ?? null,
    hash,
    variants: variants.slice(0, variantCountMax).map((variant, index) => ({
      key: truncateText(variant.key),
      rollout_percentage: variant.rolloutPercentage,
      from: index === 0 ? 0 : flag.variantBounds[index - 1]!,
      to: flag.variantBounds[index]!,
    })),
  }
}

function encodeLoaded({
  subject,
  request,
  readsPerson,
  groupTypesRead,
  project,
}: ExplainedFlag): ExplanationJson['loaded'] {
  const { person } = subject
  const found = person.ok ? (person.value === null ? 'not_found' : 'found') : person.error
  return {
    person: request.onlyUseOverridePersonProperties ? 'left_aside' : readsPerson ? found : 'not_needed',
    groups: groupTypesRead.map(typeIndex => {
      const name = project.groupTypeNames[typeIndex]!
      const row = subject.groupRows.get(typeIndex)!
      const result = row.ok ? (row.value === null ? 'not_found' : 'found') : row.error
      return { group_type: name, group_key: truncateText(usableGroupKey(ownValue(subject.groups, name))), result }
    }),
    geoip: !project.readsGeoip
      ? 'not_needed'
      : request.geoipAddress === ''
        ? 'no_address'
        : subject.geoip === null
          ? 'not_found'
          : 'found',
  }
}

function encodeDependencies(
  explained: ExplainedFlag,
): Pick<ExplanationJson, 'dependencies' | 'dependencies_left_out' | 'missing_dependencies' | 'dependency_cycle'> {
  const { project, position, evaluation } = explained
  const before = project.order.filter(at => at !== position)
  return {
    dependencies: before.slice(0, dependencyCountMax).map(at => {
      const flag = project.flags[at]!
      const outcome = evaluation.outcomes[at]
      return {
        id: flag.id,
        key: flag.key,
        value: outcome === undefined ? false : (flagValue(outcome) ?? null),
        failed: outcome?.kind === 'unknown',
        reason: outcome === undefined ? null : encodeReason(outcome),
      }
    }),
    dependencies_left_out: Math.max(0, before.length - dependencyCountMax),
    missing_dependencies: missingDependencies(explained)
      .slice(0, dependencyCountMax)
      .map(({ id, testedBy }) => ({ id, tested_by: testedBy })),
    dependency_cycle: dependencyCycle(explained)?.slice(0, dependencyCountMax) ?? null,
  }
}
