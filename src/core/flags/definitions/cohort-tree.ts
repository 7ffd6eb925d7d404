// Reads the stored tree of a dynamic cohort into types: groups, leaves and what they refer to, without evaluating
// anything. A definition may be older than our validation or have skipped it. Source: docs/wire/evaluation.md 5.11.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '../../json.ts'
import { operatorNames } from '../match/match-property.ts'
import { parseDependencyId } from './flag-dependencies.ts'
import { readStoredFilter, type StoredFilter, UnreadableFilters } from './flag-filters.ts'

export type CohortEntry =
  /** With `isAny` one entry must match (`OR`), otherwise all. */
  | { readonly kind: 'group'; readonly isAny: boolean; readonly entries: readonly CohortEntry[] }
  /** Tests a property of the person, or a flag's value. */
  | { readonly kind: 'test'; readonly filter: StoredFilter; readonly isNegated: boolean }
  /** Tests membership in a cohort: `wanted` is null for an operator that never matches. */
  | {
      readonly kind: 'cohort'
      readonly id: number
      readonly wanted: boolean | null
      readonly filter: StoredFilter
      readonly isNegated: boolean
    }
  /** What the person did. Evaluations have no such data, so such a leaf matches no person, negated or not. */
  | { readonly kind: 'behavior' }

export interface CohortTree {
  readonly top: CohortEntry
  /** The cohorts that the tree refers to, each once, in stored order. */
  readonly cohortIds: readonly number[]
  /** The flags that the tree tests, each once. */
  readonly flagIds: readonly number[]
  readonly hasBehavior: boolean
}

/** Largest number of groups between the top group and an entry. */
const groupsBetweenMax = 64
const behaviorTypes: readonly JsonValue[] = ['behavioral', 'realtime', 'event', 'precalculated-cohort']

/**
 * @param filters `{properties: {type, values}}`.
 * @returns null when the tree describes nothing, so that no person is a member.
 * @throws UnreadableFilters for a shape that is not a tree, or a tree that is too deep.
 */
export function readCohortTree(filters: JsonObject): CohortTree | null {
  const properties = getOwnValue(filters, 'properties') ?? null
  if (properties === null) return null
  const cohortIds = new Set<number>()
  const flagIds = new Set<number>()
  let hasBehavior = false
  if (!isJsonObject(properties)) throw new UnreadableFilters('"properties" is not an object')
  const top = readGroup(properties, 0)
  return { top, cohortIds: [...cohortIds], flagIds: [...flagIds], hasBehavior }

  function readGroup(group: JsonObject, groupsAbove: number): CohortEntry {
    const type = getOwnValue(group, 'type')
    if (type !== 'OR' && type !== 'AND' && type !== 'property')
      throw new UnreadableFilters(`a group is OR or AND, not ${describeValue(type)}`)
    const values = getOwnValue(group, 'values')
    if (!Array.isArray(values)) throw new UnreadableFilters('the "values" of a group are not a list')
    if (values.length > 0 && groupsAbove > groupsBetweenMax)
      throw new UnreadableFilters(`it is nested deeper than ${groupsBetweenMax} groups`)
    return { kind: 'group', isAny: type === 'OR', entries: values.map(value => readEntry(value, groupsAbove)) }
  }

  function readEntry(value: JsonValue, groupsAbove: number): CohortEntry {
    if (!isJsonObject(value)) throw new UnreadableFilters('an entry of a group is not an object')
    if (isCohortGroup(value)) return readGroup(value, groupsAbove + 1)
    if (behaviorTypes.includes(getOwnValue(value, 'type') ?? null)) {
      hasBehavior = true
      return { kind: 'behavior' }
    }
    const filter = readStoredFilter(value)
    const isNegated = readNegation(value)
    if (filter.type === 'cohort') {
      const { id, wanted } = readCohortReference(filter)
      if (id === null)
        throw new UnreadableFilters(`the value of a cohort filter is not an id: ${describeValue(filter.value)}`)
      cohortIds.add(id)
      return { kind: 'cohort', id, wanted, filter, isNegated }
    }
    if (filter.type === 'flag') {
      const flagId = parseDependencyId(filter.key)
      if (flagId !== null) flagIds.add(flagId)
    } else if (filter.operator !== null && !operatorNames.includes(filter.operator))
      throw new UnreadableFilters(`the operator ${describeValue(filter.operator)} does not exist`)
    // Cohorts consist of persons, so a group filter here tests the person, even if the condition set that uses the cohort
    // is for groups.
    return { kind: 'test', filter: filter.type === 'group' ? { ...filter, type: 'person' } : filter, isNegated }
  }
}

/** What a filter of type `cohort` refers to, on a flag or in a tree. `id` is null when its value names no cohort. */
export function readCohortReference(filter: StoredFilter): { id: number | null; wanted: boolean | null } {
  const operator = filter.operator ?? 'in'
  return { id: cohortIdOf(filter.value), wanted: operator === 'in' ? true : operator === 'not_in' ? false : null }
}

/** Reads an id given as a whole number or as a text of digits; null for anything else. */
export function cohortIdOf(value: JsonValue): number | null {
  const id = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : readJsonNumber(value)
  return id !== undefined && Number.isSafeInteger(id) ? id : null
}

/** Whether an entry is a group: property filters have neither these types nor a list of `values`. */
export function isCohortGroup(entry: JsonObject): boolean {
  const type = getOwnValue(entry, 'type')
  return type === 'OR' || type === 'AND' || type === 'property' || Array.isArray(getOwnValue(entry, 'values'))
}

function readNegation(leaf: JsonObject): boolean {
  const negation = getOwnValue(leaf, 'negation') ?? false
  if (typeof negation !== 'boolean') throw new UnreadableFilters('"negation" is not a boolean')
  return negation
}

function describeValue(value: JsonValue | undefined): string {
  return typeof value === 'string' ? `"${value.slice(0, 80)}"` : value === undefined ? 'absent' : `a ${typeof value}`
}
