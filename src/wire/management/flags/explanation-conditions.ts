// The condition sets of an explanation: the checked filters, the hashed value and the result of each set.

import {
  filtersInTestOrder,
  type StoredFilter,
  type StoredFilters,
  type StoredSet,
} from '#core/flags/definitions/flag-filters.ts'
import type { CompiledFlag, CompiledSet } from '#core/flags/evaluation/compile-flag.ts'
import type { TracedSet } from '#core/flags/evaluation/evaluation-trace.ts'
import type { ExplainedFlag } from '#core/flags/evaluation/explained-flag.ts'
import { isInRollout } from '#core/flags/rollout/rollout.ts'
import { reasonCode, reasonDescription } from '#wire/flags/flag-texts.ts'
import {
  type Budget,
  type ExplanationView,
  encodeIdentifier,
  explainCohortFilter,
  explainFilter,
  truncateText,
} from './explanation-filters.ts'
import type { ExplainedConditionJson, ExplainedFilterJson, ExplanationJson } from './explanation-shapes.ts'

const conditionCountMax = 100
/** Bounds the number of filters of all sets, or rules, together. */
export const filterCountMax = 1_000

/** Explains the first sets, and the deciding set even if it comes later. */
export function explainConditions(
  explained: ExplainedFlag,
  flag: CompiledFlag,
  definition: StoredFilters,
  view: ExplanationView,
  decidedIndex: number | null,
): Pick<ExplanationJson, 'conditions' | 'conditions_left_out'> {
  const budget: Budget = { filters: filterCountMax }
  const shown = [...flag.sets.keys()].slice(0, conditionCountMax)
  if (decidedIndex !== null && decidedIndex >= conditionCountMax && decidedIndex < flag.sets.length)
    shown.push(decidedIndex)
  const traced = explained.trace.of(flag)?.sets ?? []
  return {
    conditions: shown.map(index =>
      explainCondition({
        explained,
        flag,
        view,
        budget,
        index,
        set: flag.sets[index]!,
        stored: definition.sets[index]!,
        traced: traced[index],
      }),
    ),
    conditions_left_out: flag.sets.length - shown.length,
  }
}

interface ConditionContext {
  readonly explained: ExplainedFlag
  readonly flag: CompiledFlag
  readonly view: ExplanationView
  readonly budget: Budget
  readonly index: number
  readonly set: CompiledSet
  readonly stored: StoredSet
  readonly traced: TracedSet | undefined
}

function explainCondition(context: ConditionContext): ExplainedConditionJson {
  const { explained, set, stored, traced, index } = context
  const filters = explainFilters(context)
  const missed = traced?.missed
  return {
    condition_index: index,
    aggregation: aggregationOf(explained, set),
    reached: traced !== undefined,
    result: resultOf(traced),
    note: noteOf(context, missed),
    filters,
    filters_left_out: stored.filters.length - filters.length,
    rollout: explainRollout(set, traced, context.view),
    variant: stored.variant === null ? null : truncateText(stored.variant),
  }
}

function aggregationOf({ project }: ExplainedFlag, { groupTypeIndex }: CompiledSet): string {
  if (groupTypeIndex === null) return 'person'
  return project.groupTypeNames[groupTypeIndex] ?? `group type ${groupTypeIndex} (does not exist)`
}

function resultOf(traced: TracedSet | undefined): ExplainedConditionJson['result'] {
  if (traced === undefined) return 'not_reached'
  if (traced.missed === undefined) return 'failed'
  return traced.missed === null ? 'matched' : (reasonCode(traced.missed) as ExplainedConditionJson['result'])
}

function noteOf(context: ConditionContext, missed: TracedSet['missed']): string | null {
  const { flag, set, stored, traced, explained } = context
  if (missed === 'no_group_type') {
    const isKnown = set.groupTypeIndex !== null && explained.project.groupTypeNames[set.groupTypeIndex] !== undefined
    return isKnown
      ? 'the request has no group of this type, or its key is not a string or number'
      : 'the project has no such group type'
  }
  if (missed === 'out_of_rollout_bound' && traced?.rolloutHash01 === null)
    return 'the flag hashes device ids, but the request has none'
  if (missed === 'no_condition_match_behavioral_cohort')
    return reasonDescription({ reason: missed, conditionIndex: context.index })
  const namesNoVariant = stored.variant !== null && set.variantIndex < 0
  if (missed === null && namesNoVariant)
    return flag.variantBounds.length === 0
      ? 'its forced variant does not exist'
      : 'its forced variant does not exist: the hash decides'
  return null
}

/** Filters in the order in which they are checked: those on cohorts after all others, each kind in its stored order. */
function explainFilters({ explained, view, budget, set, stored, traced }: ConditionContext): ExplainedFilterJson[] {
  const { others, cohorts } = filtersInTestOrder(stored)
  const shown: ExplainedFilterJson[] = []
  const add = (filter: StoredFilter, explain: () => Omit<ExplainedFilterJson, 'filter_index'>) => {
    if (budget.filters <= 0) return
    budget.filters--
    shown.push({ ...explain(), filter_index: stored.filters.indexOf(filter) })
  }
  for (const [place, filter] of others.entries())
    add(filter, () => explainFilter(explained, view, filter, set.groupTypeIndex, traced?.tests[place]))
  for (const [place, filter] of cohorts.entries())
    add(filter, () => explainCohortAt(explained, view, filter, set, place, traced, budget))
  return shown
}

function explainCohortAt(
  explained: ExplainedFlag,
  view: ExplanationView,
  filter: StoredFilter,
  set: CompiledSet,
  place: number,
  traced: TracedSet | undefined,
  budget: Budget,
): Omit<ExplainedFilterJson, 'filter_index'> {
  const { cohort } = set.cohortTests[place]!
  return explainCohortFilter(explained, view, filter, cohort.ok ? cohort.value : null, traced?.cohorts[place], budget)
}

function explainRollout(
  { rolloutPercentage }: CompiledSet,
  traced: TracedSet | undefined,
  view: ExplanationView,
): ExplainedConditionJson['rollout'] {
  const hash = traced?.rolloutHash01 ?? null
  const isHashed = hash !== null && rolloutPercentage !== null
  return {
    percentage: rolloutPercentage,
    identifier: isHashed ? encodeIdentifier(traced!.bucketing!, view) : null,
    identifier_source: isHashed ? traced!.bucketing!.by : null,
    hash,
    threshold: rolloutPercentage === null ? null : rolloutPercentage / 100,
    in: isHashed ? isInRollout(hash, rolloutPercentage) : traced?.missed === null ? true : null,
  }
}
