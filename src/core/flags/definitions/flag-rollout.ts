// Whether a flag's conditions decide the same for every subject, determined without evaluating any of them. A subject is a
// person, or a group or device for a flag that is decided by those. A condition set with filters counts as matching some
// subjects and not others, no matter what it tests (even other flags). Rules of version 2 are not analysed: they always
// count as deciding differently for some. Source: docs/wire/evaluation.md 5.2–5.7.

import type { JsonObject } from '../../json.ts'
import { isSameJson } from '../../json-equal.ts'
import {
  readStoredFilters,
  type StoredFilter,
  type StoredFilters,
  type StoredSet,
  UnreadableFilters,
} from './flag-filters.ts'
import { readConfigVersion, readRules } from './read-rules.ts'

/** `unreadable`: the definition has no readable shape, so answers leave the flag out or show it as failed. */
export type FlagRollout =
  | { readonly kind: 'everybody'; readonly variant: string | null }
  | { readonly kind: 'nobody' | 'some' | 'unreadable' }

export function readFlagRollout(filters: JsonObject): FlagRollout {
  if (readConfigVersion(filters) !== 1) return { kind: readRules(filters).ok ? 'some' : 'unreadable' }
  try {
    return computeRollout(readStoredFilters(filters))
  } catch (cause) {
    if (cause instanceof UnreadableFilters) return { kind: 'unreadable' }
    throw cause
  }
}

function computeRollout(filters: StoredFilters): FlagRollout {
  const { sets, earlyExit } = filters
  const heldOut = filters.holdout?.exclusionPercentage ?? 0
  // Subjects that enrolled or opted out get a different answer than the sets give.
  if (filters.featureEnrollment) return { kind: 'some' }
  if (heldOut >= 100) return { kind: 'everybody', variant: `holdout-${filters.holdout?.id}` }
  if (heldOut > 0) return { kind: 'some' }
  /** True, false or a variant; null for one of several variants. */
  const answers = new Set<string | boolean | null>()
  let isDecided = false
  for (const [index, set] of sets.entries()) {
    if (sets.slice(0, index).some(earlier => coversSet(earlier, set, earlyExit))) continue
    const percentage = percentageOf(set)
    const isForEverybody = set.filters.length === 0 && isForFlagSubject(set, filters)
    if (percentage > 0) answers.add(findAnswerOnMatch(set, filters))
    if (earlyExit && percentage < 100) answers.add(false)
    isDecided = isForEverybody && (percentage >= 100 || earlyExit)
    if (isDecided) break
  }
  if (!isDecided) answers.add(false)
  const [answer] = answers
  if (answers.size > 1 || answer === null || answer === undefined) return { kind: 'some' }
  if (answer === false) return { kind: 'nobody' }
  return { kind: 'everybody', variant: answer === true ? null : answer }
}

/** Whether every subject that a set would include is answered by an earlier set, whose conditions the later set repeats. */
function coversSet(earlier: StoredSet, set: StoredSet, earlyExit: boolean): boolean {
  if (earlier.groupTypeIndex !== set.groupTypeIndex) return false
  // A person has the same place among the percentages in every set, so a smaller percentage leaves some persons to the
  // later set.
  if (!earlyExit && percentageOf(earlier) < percentageOf(set)) return false
  return earlier.filters.every(filter => set.filters.some(other => isSameFilter(filter, other)))
}

function isSameFilter(a: StoredFilter, b: StoredFilter): boolean {
  const { type, key, operator, groupTypeIndex } = a
  const isSameButValue =
    type === b.type && key === b.key && operator === b.operator && groupTypeIndex === b.groupTypeIndex
  return isSameButValue && isSameJson(a.value, b.value)
}

function percentageOf({ rolloutPercentage }: StoredSet): number {
  return rolloutPercentage ?? 100
}

function isForFlagSubject({ groupTypeIndex }: StoredSet, filters: StoredFilters): boolean {
  return groupTypeIndex === undefined || groupTypeIndex === filters.groupTypeIndex
}

/** The answer for a subject that matches the set; null when it is one of several variants. */
function findAnswerOnMatch(set: StoredSet, { variants }: StoredFilters): string | true | null {
  if (variants.length === 0) return true
  if (variants.some(({ key }) => key === set.variant)) return set.variant
  const served = variants.filter(({ rolloutPercentage }) => rolloutPercentage > 0)
  return served.length === 1 && served[0]!.rolloutPercentage >= 100 ? served[0]!.key : null
}
