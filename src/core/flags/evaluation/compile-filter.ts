// Compiles one stored filter into a test, and notes what the test will read.
// Source: docs/wire/evaluation.md 5.9–5.12.

import type { JsonValue } from '../../json.ts'
import { err, type Result } from '../../result.ts'
import { readCohortReference } from '../definitions/cohort-tree.ts'
import { parseDependencyId } from '../definitions/flag-dependencies.ts'
import { type StoredFilter, UnreadableFilters } from '../definitions/flag-filters.ts'
import { type CompiledMatch, compilePropertyMatch, type MatchSettings } from '../match/match-property.ts'
import type { CompiledCohort, CompiledCohorts } from './compiled-cohort.ts'
import type { FilterTest } from './filter-test.ts'
import type { NeedsCollector } from './flag-needs.ts'
import { isTransientReason, type UnknownReason } from './flag-outcome.ts'
import type { PersonKeys } from './person-properties.ts'
import type { SharedTests } from './shared-tests.ts'

export interface CohortTest {
  readonly cohort: Result<CompiledCohort, UnknownReason>
  /** The membership that the filter requires; null for an operator that never matches. */
  readonly wanted: boolean | null
}

export interface FilterCompiler {
  readonly settings: MatchSettings
  readonly personKeys: PersonKeys
  readonly sharedTests: SharedTests
  readonly cohorts: CompiledCohorts
  /** The position of each flag of the project by its id; `neverDecided` or `neverTested` for flags without a position. */
  readonly positionOfId: ReadonlyMap<number, number>
  /** Collects what the current flag reads. */
  readonly needs: NeedsCollector
  readonly dependencyIds: Set<number>
  readonly problem: (message: string) => void
}

/** The position of an inactive flag, which is false whatever it tests. */
export const neverDecided = -1
/** The position of a flag of version 2, which no filter can test. Source: docs/wire/evaluation.md 11.4. */
export const neverTested = -2

const neverHolds: FilterTest = () => false

/** Compiles a filter of any type but `cohort`. @throws UnreadableFilters for an operator that does not exist. */
export function compileFilter(filter: StoredFilter, setTypeIndex: number | null, compiler: FilterCompiler): FilterTest {
  if (filter.type === 'flag') return compileDependency(filter, compiler)
  const match = compilePropertyMatch(filter.operator ?? 'exact', filter.value, compiler.settings)
  if (match === null) throw new UnreadableFilters(`the operator "${filter.operator!.slice(0, 80)}" does not exist`)
  if (match.problem !== undefined) compiler.problem(`the filter on "${filter.key}" never matches: ${match.problem}`)
  if (filter.type === 'group') return compileGroupFilter(filter, setTypeIndex, match, compiler)
  if (filter.type === 'person_metadata') return compileMetadataFilter(filter, match, compiler)
  return compilePersonFilter(filter, match, compiler)
}

export function compilePersonFilter(
  filter: Pick<StoredFilter, 'key' | 'operator' | 'value'>,
  match: CompiledMatch,
  compiler: FilterCompiler,
): FilterTest {
  const key = compiler.personKeys.key(filter.key)
  const { matches, whenAbsent } = match
  compiler.needs.addPersonKey(key)
  return compiler.sharedTests.testOf([filter.key, filter.operator ?? 'exact', filter.value], () => reader => {
    const value = reader.personValue(key)
    if (value === undefined) return whenAbsent
    const answer = matches(value, reader.nowMs)
    return typeof answer === 'boolean' ? answer : reader.goThrough(answer, match)
  })
}

function compileMetadataFilter(filter: StoredFilter, match: CompiledMatch, compiler: FilterCompiler): FilterTest {
  const { matches, whenAbsent } = match
  compiler.needs.addPerson()
  return reader => {
    const value = reader.personMetadata(filter.key)
    if (value === undefined) return whenAbsent
    const answer = matches(value, reader.nowMs)
    return typeof answer === 'boolean' ? answer : reader.goThrough(answer, match)
  }
}

function compileGroupFilter(
  filter: StoredFilter,
  setTypeIndex: number | null,
  match: CompiledMatch,
  compiler: FilterCompiler,
): FilterTest {
  const { key } = filter
  const { matches, whenAbsent } = match
  const typeIndex = filter.groupTypeIndex ?? setTypeIndex
  if (typeIndex === null) return () => whenAbsent // of no group: an empty set of properties
  compiler.needs.addGroupKey(typeIndex, key)
  return reader => {
    const value = reader.groupValue(typeIndex, key)
    if (value === undefined) return whenAbsent
    const answer = matches(value, reader.nowMs)
    return typeof answer === 'boolean' ? answer : reader.goThrough(answer, match)
  }
}

/**
 * Tests another flag's value: `true` matches any variant, a text only that variant. Source: docs/wire/evaluation.md
 * 5.12.
 */
function compileDependency(filter: StoredFilter, compiler: FilterCompiler): FilterTest {
  const id = parseDependencyId(filter.key)
  if (id === null) return neverHolds
  compiler.dependencyIds.add(id)
  const position = compiler.positionOfId.get(id)
  const wanted = filter.value
  if (position === undefined || position === neverTested) return neverHolds
  if (filter.operator !== 'flag_evaluates_to') return neverHolds
  if (typeof wanted !== 'boolean' && typeof wanted !== 'string') return neverHolds
  if (position === neverDecided) return () => wanted === false
  return (reader, decided) => {
    const outcome = decided[position]
    if (outcome === undefined || outcome.kind === 'off') return wanted === false
    if (outcome.kind === 'unknown') {
      // If an outage made the tested flag unknown, this flag is unknown too, since false could be wrong. A tested flag that
      // failed because of its definition never has a value, so nothing matches it.
      if (isTransientReason(outcome.reason)) reader.failure = outcome.reason
      return false
    }
    return wanted === true || (outcome.kind === 'variant' && outcome.variantKey === wanted)
  }
}

export function compileCohortFilter(filter: StoredFilter, compiler: FilterCompiler): CohortTest {
  const { id, wanted } = readCohortReference(filter)
  if (id === null) return { cohort: err('cohort_filters_parsing_error'), wanted }
  const { cohort, dependencyIds } = compiler.cohorts.reach(id, compiler.problem)
  for (const dependency of dependencyIds) compiler.dependencyIds.add(dependency)
  if (cohort.ok) compiler.needs.add(cohort.value.needs)
  return { cohort, wanted }
}

const slowOperators = ['regex', 'not_regex', 'icontains_multi', 'not_icontains_multi']

/** How long the test may take, in units of one cheap flag. */
export function estimateFilterWeight(filter: Pick<StoredFilter, 'operator' | 'value'>): number {
  return slowOperators.includes(filter.operator ?? '') ? 16 : 1 + valueLength(filter.value) / 1_000
}

function valueLength(value: JsonValue): number {
  return typeof value === 'string' || Array.isArray(value) ? value.length : 1
}
