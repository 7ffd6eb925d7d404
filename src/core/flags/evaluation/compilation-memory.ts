// What one compilation of a project keeps for the next compilation. A flag is compiled again only if its definition, a
// cohort that it reaches, or the position of a flag that it tests has changed. The tests and keys that flags share are
// reused too.

import type { JsonObject } from '../../json.ts'
import { isSameJson } from '../../json-equal.ts'
import type { Flag } from '../definitions/flag.ts'
import type { MatchSettings } from '../match/match-property.ts'
import type { ProjectCohorts } from './compile-cohorts.ts'
import type { CompiledFlag } from './compile-flag.ts'
import type { ReachedCohort } from './compiled-cohort.ts'
import { PersonKeys } from './person-properties.ts'
import { SharedTests } from './shared-tests.ts'

/** A compiled flag, with what it was compiled against. */
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
  /** Flags compiled since keys and tests were created, including those that no longer exist. */
  readonly compiledCount: number
}

/** What a compilation starts with. */
export type CompilationStart = Pick<CompilationMemory, 'personKeys' | 'sharedTests' | 'entries' | 'compiledCount'> & {
  readonly cohorts: ProjectCohorts | null
}

/**
 * How many flags may be compiled before keys and tests start again from empty: at that point about half of them are
 * unused.
 */
const compiledMax = (flagCount: number) => 2 * flagCount + 100

/** Starts from the memory, unless the memory is mostly about removed flags or was made with other settings. */
export function startCompilation(
  memory: CompilationMemory | null,
  settings: MatchSettings,
  flagCount: number,
): CompilationStart {
  if (memory !== null && memory.compiledCount <= compiledMax(flagCount) && hasSameSettings(memory.settings, settings))
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

/** @param reach returns the cohort as it is compiled now. */
export function isFlagReusable(
  entry: FlagEntry,
  flag: Flag,
  positionOfId: ReadonlyMap<number, number>,
  reach: (cohortId: number) => ReachedCohort['cohort'],
): boolean {
  if (!isSameFlag(entry.flag, flag)) return false
  const { dependencyIds } = entry.compiled
  // Reaches every cohort, so that the problems of those reached for the first time are reported here.
  const areCohortsSame = entry.cohorts.map(([id, cohort]) => reach(id) === cohort)
  return (
    areCohortsSame.every(Boolean) && dependencyIds.every((id, index) => positionOfId.get(id) === entry.positions[index])
  )
}

/** Compares the version first: every write raises the version, and filters take long to compare. */
function isSameFlag(a: Flag, b: Flag): boolean {
  return a.version === b.version && isSameJson(a as unknown as JsonObject, b as unknown as JsonObject)
}
