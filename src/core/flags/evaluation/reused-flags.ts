// What the last compilation of a project left for the next one: a flag is compiled again only when its definition, a cohort that
// it reaches or the place of a flag that it tests is another one. The tests and keys that flags share live on with it.

import { isSameJson } from '../../json-equal.ts'
import type { Flag } from '../definitions/flag.ts'
import type { MatchSettings } from '../match/match-property.ts'
import type { ProjectCohorts } from './compile-cohorts.ts'
import type { CompiledFlag } from './compile-flag.ts'
import type { ReachedCohort } from './compiled-cohort.ts'
import { PersonKeys } from './person-properties.ts'
import { SharedTests } from './shared-tests.ts'

/** A flag as it was compiled, with what it was compiled against. */
export interface FlagEntry {
  readonly flag: Flag
  readonly compiled: CompiledFlag
  /** What is wrong with the flag itself, not with its cohorts. */
  readonly problems: readonly string[]
  /** The position of each flag in `compiled.dependencyIds`, undefined for a flag that did not exist. */
  readonly positions: readonly (number | undefined)[]
  readonly cohorts: readonly (readonly [id: number, cohort: ReachedCohort['cohort']])[]
}

export interface CompilationMemory {
  readonly settings: MatchSettings
  readonly personKeys: PersonKeys
  readonly sharedTests: SharedTests
  readonly cohorts: ProjectCohorts
  readonly entries: ReadonlyMap<number, FlagEntry>
  /** Flags compiled since keys and tests were begun, including those that are no longer read. */
  readonly compiledCount: number
}

/** What a compilation begins with. */
export type CompilationStart = Pick<CompilationMemory, 'personKeys' | 'sharedTests' | 'entries' | 'compiledCount'> & {
  readonly cohorts: ProjectCohorts | null
}

/** Keys and tests of earlier definitions may be as many as those of the present ones, and some more. */
const leftOverMax = (flagCount: number) => 2 * flagCount + 100

/** Begins with what was remembered, unless that is mostly about what is gone, or was made with other settings. */
export function startCompilation(
  memory: CompilationMemory | null,
  settings: MatchSettings,
  flagCount: number,
): CompilationStart {
  if (memory !== null && memory.compiledCount <= leftOverMax(flagCount) && hasSameSettings(memory.settings, settings))
    return memory
  return {
    personKeys: new PersonKeys(),
    sharedTests: new SharedTests(),
    entries: new Map(),
    compiledCount: 0,
    cohorts: null,
  }
}

function hasSameSettings(a: MatchSettings, b: MatchSettings): boolean {
  return a.timezone === b.timezone && a.propertyMatchingVersion === b.propertyMatchingVersion
}

/** @param reach the cohort as it is compiled now. */
export function isReusable(
  entry: FlagEntry,
  flag: Flag,
  positionOfId: ReadonlyMap<number, number>,
  reach: (cohortId: number) => ReachedCohort['cohort'],
): boolean {
  if (!isSameFlag(entry.flag, flag)) return false
  const { dependencyIds } = entry.compiled
  // Every cohort is asked for, so that problems of those reached for the first time are reported here.
  const areCohortsSame = entry.cohorts.map(([id, cohort]) => reach(id) === cohort)
  return (
    areCohortsSame.every(Boolean) && dependencyIds.every((id, index) => positionOfId.get(id) === entry.positions[index])
  )
}

/** In all that `compileFlag` reads. The filters last: they are the only ones that take long. */
function isSameFlag(a: Flag, b: Flag): boolean {
  return (
    a === b ||
    (a.key === b.key &&
      a.version === b.version &&
      a.hasExperiment === b.hasExperiment &&
      a.evaluationRuntime === b.evaluationRuntime &&
      a.bucketingIdentifier === b.bucketingIdentifier &&
      a.ensureExperienceContinuity === b.ensureExperienceContinuity &&
      isSameJson([...a.evaluationContexts], [...b.evaluationContexts]) &&
      isSameJson(a.filters, b.filters))
  )
}
