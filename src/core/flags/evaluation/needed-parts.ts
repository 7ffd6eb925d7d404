// Finds the parts that the JSON text of a person's properties must contain for a flag to be anything but off. A store
// skips persons without these parts. For a person who has them, the flag may still be off: the evaluator decides.
// Source: docs/wire/evaluation.md 5.4, 5.8, 5.9, 5.11.

import type { JsonObject } from '../../json.ts'
import type { Cohort } from '../definitions/cohort.ts'
import { type CohortEntry, readCohortReference, readCohortTree } from '../definitions/cohort-tree.ts'
import { readStoredFilters, type StoredFilter, type StoredSet, UnreadableFilters } from '../definitions/flag-filters.ts'
import { readConfigVersion } from '../definitions/read-rules.ts'
import { doesOperatorNeedValue } from '../match/match-property.ts'
import { findPropertyTextParts, type TextParts } from '../match/property-text-parts.ts'
import { PersonKeys } from './person-properties.ts'

/** The text contains all parts of at least one alternative of each list. */
export type NeededParts = readonly (readonly TextParts[])[]

/** Bounded because a store searches each text for each alternative. */
const alternativeCountMax = 20
const listCountMax = 5

/** @returns an empty list when no part is known to be needed. */
export function findNeededParts(filters: JsonObject, cohorts: ReadonlyMap<number, Cohort>): NeededParts {
  // Rules give a value even to subjects that no rule matches, so no part is needed.
  if (readConfigVersion(filters) !== 1) return []
  const open = new Set<number>()
  try {
    const { sets, groupTypeIndex, featureEnrollment, holdout } = readStoredFilters(filters)
    // Enrolment and a holdout give values even to subjects that match no condition, so no part is needed.
    if (featureEnrollment || holdout !== null) return []
    return mergeNeededParts(sets.map(set => ((set.groupTypeIndex ?? groupTypeIndex) === null ? findSetParts(set) : [])))
  } catch (error) {
    if (error instanceof UnreadableFilters) return []
    throw error
  }

  function findSetParts({ filters }: StoredSet): NeededParts {
    return joinParts(
      filters.map(filter => {
        if (filter.type !== 'cohort') return findFilterParts(filter)
        const { id, wanted } = readCohortReference(filter)
        return wanted === true && id !== null ? findCohortParts(id) : []
      }),
    )
  }

  function findCohortParts(id: number): NeededParts {
    const cohort = cohorts.get(id)
    if (cohort === undefined || cohort.isStatic || open.has(id)) return []
    open.add(id)
    const tree = readCohortTree(cohort.filters)
    const parts = tree === null ? [] : findEntryParts(tree.top)
    open.delete(id)
    return parts
  }

  function findEntryParts(entry: CohortEntry): NeededParts {
    if (entry.kind === 'group') return (entry.isAny ? mergeNeededParts : joinParts)(entry.entries.map(findEntryParts))
    if (entry.kind === 'behavior' || entry.isNegated) return []
    if (entry.kind === 'test') return findFilterParts(entry.filter)
    return entry.wanted === true ? findCohortParts(entry.id) : []
  }
}

function joinParts(needed: readonly NeededParts[]): NeededParts {
  return needed.flat().slice(0, listCountMax)
}

/** The parts that are needed whichever of the alternatives holds. */
export function mergeNeededParts(needed: readonly NeededParts[]): NeededParts {
  const [only, ...others] = needed
  if (only !== undefined && others.length === 0) return only
  const alternatives: TextParts[] = []
  for (const lists of needed) {
    const shortest = lists.toSorted((a, b) => a.length - b.length)[0]
    if (shortest === undefined || alternatives.length + shortest.length > alternativeCountMax) return []
    alternatives.push(...shortest)
  }
  return alternatives.length === 0 ? [] : [alternatives]
}

function findFilterParts({ type, key, operator, value }: StoredFilter): NeededParts {
  // The distinct id is not a stored property, so the stored text need not contain it.
  if (type !== 'person' || key === 'distinct_id' || !doesOperatorNeedValue(operator ?? 'exact')) return []
  const exact = (operator ?? 'exact') === 'exact' && value !== null ? value : undefined
  const alternatives = listPropertyNames(key).flatMap(name => findPropertyTextParts(name, exact))
  return alternatives.length <= alternativeCountMax && alternatives.every(parts => parts.length > 0)
    ? [alternatives]
    : []
}

/** The names of the property and of the properties that are read when it is absent. */
function listPropertyNames(key: string): string[] {
  const names = [key]
  for (let { substitute } = new PersonKeys().key(key); substitute !== null; substitute = substitute.substitute)
    names.push(substitute.name)
  return names
}
