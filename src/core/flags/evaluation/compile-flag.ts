// Compiles one stored flag into what an evaluation executes: tests in stored order, thresholds, bounds of variants,
// outcomes. An evaluation never reads the stored JSON.

import { computeVariantBounds } from '#core/flags/rollout/rollout.ts'
import type { Flag } from '../definitions/flag.ts'
import {
  readStoredFilters,
  type StoredFilters,
  type StoredSet,
  separateCohortFilters,
} from '../definitions/flag-filters.ts'
import { readConfigVersion } from '../definitions/read-rules.ts'
import {
  type CohortTest,
  compileCohortFilter,
  compileFilter,
  estimateFilterWeight,
  type FilterCompiler,
} from './compile-filter.ts'
import { type CompiledRules, compileRules } from './compile-rules.ts'
import type { FilterTest } from './filter-test.ts'
import { type FlagNeeds, NeedsCollector } from './flag-needs.ts'
import type { PersonKey } from './person-properties.ts'
import { PreparedOutcomes } from './prepared-outcomes.ts'

/**
 * Which id of a person is hashed. `continuity`: the id in an override row, else the id before the login, else the distinct
 * id.
 */
export type Bucketing = 'distinct_id' | 'device_id' | 'continuity'

export interface CompiledSet {
  /** The group type whose key is hashed; null when the set is for persons. */
  readonly groupTypeIndex: number | null
  readonly tests: readonly FilterTest[]
  readonly cohortTests: readonly CohortTest[]
  /** Null when the set includes everyone, without hashing. */
  readonly rolloutPercentage: number | null
  /** Index of the variant that the set names; -1 when the hash decides. */
  readonly variantIndex: number
}

export interface CompiledFlag {
  readonly id: number
  readonly key: string
  readonly version: number
  readonly hasExperiment: boolean
  readonly runtime: 'all' | 'client' | 'server'
  readonly contexts: readonly string[]
  readonly bucketing: Bucketing
  readonly groupTypeIndex: number | null
  /** Null when the flag is not an early access feature. */
  readonly enrollmentKey: PersonKey | null
  readonly holdoutPercentage: number | null
  readonly sets: readonly CompiledSet[]
  readonly variantBounds: readonly number[]
  readonly earlyExit: boolean
  /** Null in version 1. A flag that has rules has no sets, nor anything that belongs to sets. */
  readonly rules: CompiledRules | null
  readonly outcomes: PreparedOutcomes
  readonly needs: FlagNeeds
  /** Ids of the flags that this flag tests, directly or through a cohort. */
  readonly dependencyIds: readonly number[]
  /** The flag's evaluation time in units of one cheap flag: decides how often a long evaluation checks the time. */
  readonly weight: number
}

/**
 * A cache of `isVersion1Flag`: every compilation calls it for every flag, and most flags are the same objects as before.
 */
const known = new WeakMap<Flag, boolean>()

export function isVersion1Flag(flag: Flag): boolean {
  const before = known.get(flag)
  if (before !== undefined) return before
  const is = readConfigVersion(flag.filters) === 1
  known.set(flag, is)
  return is
}

/**
 * Nothing in the result may close over `shared`: the result outlives its compilation, which may have included thousands of
 * other flags.
 * @throws UnreadableFilters when the stored definition has no readable shape.
 */
export function compileFlag(flag: Flag, shared: Omit<FilterCompiler, 'needs' | 'dependencyIds'>): CompiledFlag {
  const hasSets = isVersion1Flag(flag)
  const filters = readStoredFilters(hasSets ? flag.filters : {})
  const needs = new NeedsCollector()
  const dependencyIds = new Set<number>()
  const compiler = { ...shared, needs, dependencyIds }
  const sets = filters.sets.map(set => compileSet(set, filters, compiler))
  const enrollmentKey = filters.featureEnrollment ? shared.personKeys.key(`$feature_enrollment/${flag.key}`) : null
  if (enrollmentKey !== null) needs.addPersonKey(enrollmentKey)
  const bucketing = chooseBucketing(flag, filters)
  needs.continuity = flag.ensureExperienceContinuity && hasSets
  needs.hashKeyOverrides = bucketing === 'continuity' && sets.some(set => hashesPerson(set, filters))
  const outcomes = new PreparedOutcomes({
    variantKeys: filters.variants.map(variant => variant.key),
    holdoutKey: filters.holdout === null ? null : `holdout-${filters.holdout.id}`,
    payloads: filters.payloads,
  })
  const rules = hasSets ? null : compileRules(flag.filters, outcomes, compiler)
  return {
    id: flag.id,
    key: flag.key,
    version: flag.version,
    hasExperiment: flag.hasExperiment || (rules?.hasExperiment ?? false),
    runtime:
      flag.evaluationRuntime === 'client' || flag.evaluationRuntime === 'server' ? flag.evaluationRuntime : 'all',
    contexts: flag.evaluationContexts,
    bucketing,
    groupTypeIndex: filters.groupTypeIndex,
    enrollmentKey,
    holdoutPercentage: filters.holdout?.exclusionPercentage ?? null,
    sets,
    variantBounds: computeVariantBounds(filters.variants.map(variant => variant.rolloutPercentage)),
    earlyExit: filters.earlyExit,
    rules,
    outcomes,
    needs,
    dependencyIds: [...dependencyIds],
    weight: rules?.weight ?? computeWeight(filters, sets),
  }
}

function compileSet(set: StoredSet, flag: StoredFilters, compiler: FilterCompiler): CompiledSet {
  const groupTypeIndex = set.groupTypeIndex === undefined ? flag.groupTypeIndex : set.groupTypeIndex
  const asked = separateCohortFilters(set)
  return {
    groupTypeIndex,
    tests: asked.others.map(filter => compileFilter(filter, groupTypeIndex, compiler)),
    cohortTests: asked.cohorts.map(filter => compileCohortFilter(filter, compiler)),
    rolloutPercentage: set.rolloutPercentage === 100 ? null : set.rolloutPercentage,
    variantIndex: set.variant === null ? -1 : flag.variants.findIndex(variant => variant.key === set.variant),
  }
}

/** Whether a set's answer depends on the person's id. It does not if the set gives everyone the same answer. */
function hashesPerson(set: CompiledSet, { variants }: StoredFilters): boolean {
  if (set.groupTypeIndex !== null) return false
  return set.rolloutPercentage !== null || (set.variantIndex < 0 && variants.length > 0)
}

/** Source: docs/wire/evaluation.md 5.3. */
function chooseBucketing(flag: Flag, filters: StoredFilters): Bucketing {
  if (flag.bucketingIdentifier === 'device_id') return 'device_id'
  return flag.ensureExperienceContinuity && filters.groupTypeIndex === null ? 'continuity' : 'distinct_id'
}

function computeWeight(filters: StoredFilters, sets: readonly CompiledSet[]): number {
  let weight = 1
  for (const set of filters.sets) for (const filter of set.filters) weight += estimateFilterWeight(filter)
  for (const { cohortTests } of sets) for (const { cohort } of cohortTests) if (cohort.ok) weight += cohort.value.weight
  return weight
}
