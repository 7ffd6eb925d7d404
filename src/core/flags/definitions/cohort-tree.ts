// The stored tree of a dynamic cohort, read into types: groups and leaves, with whatever they name, and nothing about what
// they come to. A definition may be older than our validation or have skipped it. Source: docs/wire/evaluation.md 5.11.

import { isJsonObject, type JsonObject, type JsonValue, numberOf, ownValue } from '../../json.ts'
import { operatorNames } from '../match/match-property.ts'
import { dependencyId } from './flag-dependencies.ts'
import { readFilter, type StoredFilter, UnreadableFilters } from './flag-filters.ts'

export type CohortEntry =
  /** `isAny`: one entry is enough (`OR`); else all have to hold. */
  | { readonly kind: 'group'; readonly isAny: boolean; readonly entries: readonly CohortEntry[] }
  /** A property of the person, or another flag's value. */
  | { readonly kind: 'test'; readonly filter: StoredFilter; readonly isNegated: boolean }
  /** `wanted` null: an operator that never matches. */
  | { readonly kind: 'cohort'; readonly id: number; readonly wanted: boolean | null; readonly isNegated: boolean }
  /** What the person did: nobody keeps that for an evaluation, so nobody is a member by it, negated or not. */
  | { readonly kind: 'behavior' }

export interface CohortTree {
  readonly top: CohortEntry
  /** Cohorts that it refers to, each once, in stored order. */
  readonly cohortIds: readonly number[]
  /** Flags that it tests, each once. */
  readonly flagIds: readonly number[]
  readonly hasBehavior: boolean
}

/** Groups between the top one and an entry. */
const groupsBetweenMax = 64
const behaviorTypes: readonly JsonValue[] = ['behavioral', 'realtime', 'event', 'precalculated-cohort']

/**
 * @param filters `{properties: {type, values}}`.
 * @returns null when nothing is described: nobody is a member then.
 * @throws UnreadableFilters for a shape that is no tree, or one that is too deep.
 */
export function readCohortTree(filters: JsonObject): CohortTree | null {
  const properties = ownValue(filters, 'properties') ?? null
  if (properties === null) return null
  const cohortIds = new Set<number>()
  const flagIds = new Set<number>()
  let hasBehavior = false
  if (!isJsonObject(properties)) throw new UnreadableFilters('"properties" is no object')
  const top = readGroup(properties, 0)
  return { top, cohortIds: [...cohortIds], flagIds: [...flagIds], hasBehavior }

  function readGroup(group: JsonObject, groupsAbove: number): CohortEntry {
    const type = ownValue(group, 'type')
    if (type !== 'OR' && type !== 'AND' && type !== 'property')
      throw new UnreadableFilters(`a group is OR or AND, not ${shown(type)}`)
    const values = ownValue(group, 'values')
    if (!Array.isArray(values)) throw new UnreadableFilters('the "values" of a group are no list')
    if (values.length > 0 && groupsAbove > groupsBetweenMax)
      throw new UnreadableFilters(`it is deeper than ${groupsBetweenMax} groups`)
    return { kind: 'group', isAny: type === 'OR', entries: values.map(value => readEntry(value, groupsAbove)) }
  }

  function readEntry(value: JsonValue, groupsAbove: number): CohortEntry {
    if (!isJsonObject(value)) throw new UnreadableFilters('an entry of a group is no object')
    if (isGroup(value)) return readGroup(value, groupsAbove + 1)
    if (behaviorTypes.includes(ownValue(value, 'type') ?? null)) {
      hasBehavior = true
      return { kind: 'behavior' }
    }
    const filter = readFilter(value)
    const isNegated = readNegation(value)
    if (filter.type === 'cohort') {
      const { id, wanted } = readCohortReference(filter)
      if (id === null) throw new UnreadableFilters(`the value of a cohort filter is no id: ${shown(filter.value)}`)
      cohortIds.add(id)
      return { kind: 'cohort', id, wanted, isNegated }
    }
    if (filter.type === 'flag') {
      const flagId = dependencyId(filter.key)
      if (flagId !== null) flagIds.add(flagId)
    } else if (filter.operator !== null && !operatorNames.includes(filter.operator))
      throw new UnreadableFilters(`the operator ${shown(filter.operator)} does not exist`)
    // Whatever aggregates the set that asks, a cohort is one of persons.
    return { kind: 'test', filter: filter.type === 'group' ? { ...filter, type: 'person' } : filter, isNegated }
  }
}

/** What a filter of type `cohort` refers to, on a flag or in a tree. `id` null: its value names no cohort. */
export function readCohortReference(filter: StoredFilter): { id: number | null; wanted: boolean | null } {
  const operator = filter.operator ?? 'in'
  return { id: cohortIdOf(filter.value), wanted: operator === 'in' ? true : operator === 'not_in' ? false : null }
}

/** A whole number, or a text of digits. */
export function cohortIdOf(value: JsonValue): number | null {
  const id = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : numberOf(value)
  return id !== undefined && Number.isSafeInteger(id) ? id : null
}

/** A property filter may have any `type` but these, and no list of `values`. */
export function isGroup(entry: JsonObject): boolean {
  const type = ownValue(entry, 'type')
  return type === 'OR' || type === 'AND' || type === 'property' || Array.isArray(ownValue(entry, 'values'))
}

function readNegation(leaf: JsonObject): boolean {
  const negation = ownValue(leaf, 'negation') ?? false
  if (typeof negation !== 'boolean') throw new UnreadableFilters('"negation" is no boolean')
  return negation
}

function shown(value: JsonValue | undefined): string {
  return typeof value === 'string' ? `"${value.slice(0, 80)}"` : value === undefined ? 'absent' : `a ${typeof value}`
}
