// The explanation of one flag for one subject: its value and the reason, and the evaluator's trace next to the definition.
// Its size is bounded for any definition. Source: ours, docs/operating/explain.md.

import { readStoredFilters, separateCohortFilters } from '#core/flags/definitions/flag-filters.ts'
import type { Rule } from '#core/flags/definitions/rules-document.ts'
import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import { readUsableGroupKey } from '#core/flags/evaluation/evaluation-subject.ts'
import type { TracedHoldout, TracedSet } from '#core/flags/evaluation/evaluation-trace.ts'
import {
  type ExplainedFlag,
  findDependencyCycle,
  listMissingDependencies,
} from '#core/flags/evaluation/explained-flag.ts'
import { type FlagOutcome, flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'
import { getOwnValue, type JsonValue } from '#core/json.ts'
import type { Result } from '#core/result.ts'
import { describeReason, reasonCodeOf } from '#wire/flags/flag-texts.ts'
import { formatInstant } from '../shapes.ts'
import {
  ExplainedFilters,
  type ExplanationPermissions,
  type FilterToExplain,
  truncateText,
  truncateValue,
} from './explanation-filters.ts'
import type { ExplainedConditionJson, ExplanationJson } from './explanation-shapes.ts'

const conditionCountMax = 100
const dependencyCountMax = 100
const problemCountMax = 20

export function encodeExplanation(explained: ExplainedFlag, view: ExplanationPermissions): ExplanationJson {
  const { stored, flag, evaluation, position, subject, leftOut } = explained
  const outcome = flag === undefined ? undefined : evaluation.outcomes[position]
  return {
    flag: { id: stored.id, key: stored.key, version: stored.version, active: stored.active },
    left_out: leftOut,
    value: readDecidedValue(outcome),
    payload: stored.hasEncryptedPayloads ? null : (outcome?.payload ?? null),
    failed: outcome?.kind === 'unknown',
    reason: encodeReason(outcome),
    evaluated_at: formatInstant(subject.nowMs),
    loaded: encodeLoaded(explained),
    ...(flag === undefined ? nothingEvaluated : encodeSteps(explained, flag, outcome, view)),
    ...encodeDependencies(explained),
    problems: explained.project.problems.slice(0, problemCountMax).map(({ flagKey, message }) => {
      return flagKey === stored.key ? message : `${truncateText(flagKey)}: ${message}`
    }),
  }
}

function readDecidedValue(outcome: FlagOutcome | undefined): JsonValue {
  if (outcome === undefined || outcome.kind === 'unknown') return null
  return outcome.typed === undefined ? (flagValueOf(outcome) ?? null) : truncateValue(outcome.typed.value)
}

function encodeReason(outcome: FlagOutcome | undefined): ExplanationJson['reason'] {
  if (outcome === undefined) return null
  const { reason, conditionIndex } = outcome
  return { code: reasonCodeOf(reason), condition_index: conditionIndex, description: describeReason(outcome) }
}

type Steps = Pick<ExplanationJson, 'enrollment' | 'holdout' | 'conditions' | 'conditions_left_out' | 'variant'>

const nothingEvaluated: Steps = {
  enrollment: null,
  holdout: null,
  conditions: [],
  conditions_left_out: 0,
  variant: null,
}

/** Shows the first conditions, and also the condition that decided, even if it comes later. */
function encodeSteps(
  explained: ExplainedFlag,
  flag: CompiledFlag,
  outcome: PreparedOutcome | undefined,
  view: ExplanationPermissions,
): Steps {
  const { conditions, holdout, chosen, variants } = buildDefinition(explained, flag, outcome)
  const trace = explained.trace.of(flag)
  const filters = new ExplainedFilters(explained, view)
  const decidedIndex = outcome?.conditionIndex ?? -1
  const shown = [...conditions.entries()].filter(([index]) => index < conditionCountMax || index === decidedIndex)
  return {
    enrollment:
      flag.enrollmentKey === null || trace?.enrollment == null
        ? null
        : {
            property: truncateText(flag.enrollmentKey.name),
            decides: trace.enrollment.value !== undefined,
            compared: filters.read('person', flag.enrollmentKey.name),
          },
    holdout: holdout === null ? null : encodeHoldout(holdout, trace?.holdout),
    conditions: shown.map(([index, condition]) => encodeCondition(condition, index, trace?.sets[index], filters, view)),
    conditions_left_out: conditions.length - shown.length,
    variant: variants.length === 0 && chosen === null ? null : { chosen, hash: trace?.variantHash01 ?? null, variants },
  }
}

interface Definition {
  readonly conditions: readonly Condition[]
  readonly holdout: Holdout | null
  /** The variant that was served. */
  readonly chosen: string | null
  readonly variants: VariantJson[]
}

/** A condition set, or a rule. */
interface Condition {
  readonly aggregation: string
  /** In the order in which they are tested. */
  readonly filters: readonly FilterToExplain[]
  readonly rolloutPercentage: number | null
  readonly variant: string | null
  readonly rule?: Rule
}

interface Holdout {
  readonly id: string | number | null
  readonly exclusionPercentage: number
}

type VariantJson = NonNullable<ExplanationJson['variant']>['variants'][number]

function buildDefinition(
  { project }: ExplainedFlag,
  flag: CompiledFlag,
  outcome: PreparedOutcome | undefined,
): Definition {
  if (flag.rules !== null) {
    const { rules } = flag.rules
    const served = rules.find(({ rule, values }) => rule.type === 'experiment' && values.includes(outcome!))
    const variants = served?.rule.type === 'experiment' ? served.rule.variants : []
    return {
      conditions: rules.map(({ rule }) => toCondition(rule)),
      holdout: null,
      chosen: variants[served?.values.indexOf(outcome!) ?? -1]?.key ?? null,
      variants: variants.map(({ key, weight }, index) => encodeBounds(key, weight, index, served!.variantBounds)),
    }
  }
  const stored = readStoredFilters(project.definitions.flags.find(({ id }) => id === flag.id)!.filters)
  return {
    conditions: stored.sets.map((set, index) => {
      const { groupTypeIndex: typeIndex, cohortTests, rolloutPercentage } = flag.sets[index]!
      const { others, cohorts } = separateCohortFilters(set)
      const group = typeIndex === null ? undefined : project.groupTypeNames[typeIndex]
      return {
        aggregation: typeIndex === null ? 'person' : (group ?? `group type ${typeIndex} (does not exist)`),
        filters: [
          ...others.map(filter => ({ filter, typeIndex, index: set.filters.indexOf(filter) })),
          ...cohorts.map((filter, place) => {
            const { cohort } = cohortTests[place]!
            return { filter, typeIndex, index: set.filters.indexOf(filter), ...(cohort.ok && { cohort: cohort.value }) }
          }),
        ],
        rolloutPercentage,
        variant: set.variant,
      }
    }),
    holdout: stored.holdout,
    chosen: outcome?.kind === 'variant' ? truncateText(outcome.variantKey) : null,
    variants: stored.variants.map(({ key, rolloutPercentage }, index) =>
      encodeBounds(key, rolloutPercentage, index, flag.variantBounds),
    ),
  }
}

function toCondition(rule: Rule): Condition {
  return {
    aggregation: 'person',
    filters: rule.predicates.map(({ key, operator, value = null, negation }, index) => {
      return {
        filter: { type: 'person', key, operator, value, groupTypeIndex: null },
        typeIndex: null,
        index,
        negation,
      }
    }),
    rolloutPercentage: rule.type === 'targeted_release' ? null : rule.rolloutPercentage,
    variant: null,
    rule,
  }
}

function encodeBounds(key: string, percentage: number, index: number, bounds: readonly number[]): VariantJson {
  return {
    ...{ key: truncateText(key), rollout_percentage: percentage },
    ...{ from: bounds[index - 1] ?? 0, to: bounds[index]! },
  }
}

function encodeCondition(
  { aggregation, filters, rolloutPercentage, variant, rule }: Condition,
  index: number,
  traced: TracedSet | undefined,
  explained: ExplainedFilters,
  { showsPersons }: ExplanationPermissions,
): ExplainedConditionJson {
  const shown = explained.encode(filters, traced?.tests ?? [])
  const bucketing = traced?.bucketing ?? null
  // A stored override is another distinct id of the person, so it is hidden if persons may not be shown.
  const isHidden = bucketing?.by === 'stored_override' && !showsPersons
  return {
    condition_index: index,
    aggregation,
    result: toConditionResult(traced),
    filters: shown,
    filters_left_out: filters.length - shown.length,
    bucketing: bucketing && { ...bucketing, identifier: isHidden ? null : truncateText(bucketing.identifier) },
    rollout: { percentage: rolloutPercentage, hash: traced?.rolloutHash01 ?? null },
    variant: variant === null ? null : truncateText(variant),
    ...(rule && {
      rule: {
        ...{ id: rule.id, rule_type: rule.type },
        holdout: rule.type === 'experiment' && rule.holdout ? encodeHoldout(rule.holdout, traced?.holdout) : null,
      },
    }),
  }
}

function toConditionResult(traced: TracedSet | undefined): ExplainedConditionJson['result'] {
  if (traced === undefined) return 'not_reached'
  if (traced.missed === undefined) return 'failed'
  return (traced.missed ?? 'matched') as ExplainedConditionJson['result']
}

/** @param traced null or undefined when the holdout was not tested. */
function encodeHoldout({ id, exclusionPercentage }: Holdout, traced: TracedHoldout | null | undefined) {
  return {
    ...{ id, exclusion_percentage: exclusionPercentage },
    identifier: traced == null ? null : truncateText(traced.identifier),
    hash: traced?.hash01 ?? null,
    held_out: traced?.isHeldOut ?? null,
  }
}

function encodeLoaded(explained: ExplainedFlag): ExplanationJson['loaded'] {
  const { subject, request, readsPerson, groupTypesRead, project } = explained
  const { onlyUseOverridePersonProperties: leftAside, geoipAddress } = request
  const found = geoipAddress === '' ? 'no_address' : subject.geoip === null ? 'not_found' : 'found'
  return {
    person: leftAside ? 'left_aside' : readsPerson ? toLoadedResult(subject.person) : 'not_needed',
    groups: groupTypesRead.map(typeIndex => {
      const name = project.groupTypeNames[typeIndex]!
      const key = readUsableGroupKey(getOwnValue(subject.groups, name))
      return {
        group_type: name,
        group_key: truncateText(key),
        result: toLoadedResult(subject.groupRows.get(typeIndex)!),
      }
    }),
    geoip: project.readsGeoip ? found : 'not_needed',
  }
}

function toLoadedResult(row: Result<object | null, string>): string {
  return row.ok ? (row.value === null ? 'not_found' : 'found') : row.error
}

function encodeDependencies(
  explained: ExplainedFlag,
): Pick<ExplanationJson, 'dependencies' | 'dependencies_left_out' | 'missing_dependencies' | 'dependency_cycle'> {
  const { project, position, evaluation } = explained
  const before = project.order.filter(at => at !== position)
  return {
    dependencies: before.slice(0, dependencyCountMax).map(at => {
      const { id, key } = project.flags[at]!
      const outcome = evaluation.outcomes[at]
      const value = outcome === undefined ? false : (flagValueOf(outcome) ?? null)
      return { id, key, value, failed: outcome?.kind === 'unknown', reason: encodeReason(outcome) }
    }),
    dependencies_left_out: Math.max(0, before.length - dependencyCountMax),
    missing_dependencies: listMissingDependencies(explained)
      .slice(0, dependencyCountMax)
      .map(({ id, testedBy }) => ({ id, tested_by: testedBy })),
    dependency_cycle: findDependencyCycle(explained)?.slice(0, dependencyCountMax) ?? null,
  }
}
