// Reads the stored `filters` of version 1 into types, with defaults filled in and without judging their meaning. A
// definition may be older than our validation or have skipped it; any fault in its shape makes the flag unreadable.
// Source: docs/wire/evaluation.md 4.2.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '../../json.ts'
import { readConfigVersion } from './read-rules.ts'

export const filterTypes = ['person', 'group', 'cohort', 'flag', 'person_metadata'] as const
export type FilterType = (typeof filterTypes)[number]

export interface StoredFilter {
  readonly type: FilterType
  readonly key: string
  readonly value: JsonValue
  readonly operator: string | null
  readonly groupTypeIndex: number | null
}

export interface StoredSet {
  readonly filters: readonly StoredFilter[]
  /** Null when the set includes everyone. */
  readonly rolloutPercentage: number | null
  readonly variant: string | null
  /** The group type that the set is for; null for persons, undefined for the flag's own group type. */
  readonly groupTypeIndex: number | null | undefined
}

export interface StoredFilters {
  readonly sets: readonly StoredSet[]
  readonly variants: readonly { readonly key: string; readonly rolloutPercentage: number }[]
  readonly payloads: JsonObject
  readonly groupTypeIndex: number | null
  readonly featureEnrollment: boolean
  readonly holdout: { readonly id: string; readonly exclusionPercentage: number } | null
  readonly earlyExit: boolean
}

/** A fault in a definition's shape. Never leaves `core/flags`: compiling turns it into a problem. */
export class UnreadableFilters extends Error {}

/**
 * @throws UnreadableFilters, also for a document of another version, whose rules would read as "no conditions":
 * `read-rules.ts` reads documents of version 2.
 */
export function readStoredFilters(filters: JsonObject): StoredFilters {
  if (readConfigVersion(filters) !== 1) throw new UnreadableFilters('"version" is not 1')
  const multivariate = readOptional(filters, 'multivariate', readObject)
  return {
    sets: (readOptional(filters, 'groups', readList) ?? []).map(readSet),
    variants: (multivariate === null ? [] : (readOptional(multivariate, 'variants', readList) ?? [])).map(readVariant),
    payloads: readOptional(filters, 'payloads', readObject) ?? {},
    groupTypeIndex: readOptional(filters, 'aggregation_group_type_index', readInteger),
    featureEnrollment: readOptional(filters, 'feature_enrollment', readBoolean) ?? false,
    holdout: readHoldout(filters),
    earlyExit: readOptional(filters, 'early_exit', readBoolean) ?? false,
  }
}

/**
 * A set's filters in the order in which they are tested: cohort filters after all others, each kind in stored order.
 * Source: docs/wire/evaluation.md 5.4.
 */
export function separateCohortFilters({ filters }: Pick<StoredSet, 'filters'>): {
  readonly others: readonly StoredFilter[]
  readonly cohorts: readonly StoredFilter[]
} {
  const isOnCohort = ({ type }: StoredFilter) => type === 'cohort'
  return { others: filters.filter(filter => !isOnCohort(filter)), cohorts: filters.filter(isOnCohort) }
}

function readSet(value: JsonValue, index: number): StoredSet {
  const set = readObject(value, `groups[${index}]`)
  const own = getOwnValue(set, 'aggregation_group_type_index')
  return {
    filters: (readOptional(set, 'properties', readList) ?? []).map(readStoredFilter),
    rolloutPercentage: readOptional(set, 'rollout_percentage', readNumber),
    variant: readOptional(set, 'variant', readText),
    groupTypeIndex: own === undefined || own === null ? own : readInteger(own, 'aggregation_group_type_index'),
  }
}

/** Reads one entry of a set's `properties`, or a leaf of a cohort's tree. @throws UnreadableFilters */
export function readStoredFilter(value: JsonValue): StoredFilter {
  const filter = readObject(value, 'properties')
  const type = readRequired(filter, 'type', readText)
  if (!isFilterType(type)) throw new UnreadableFilters(`the filter type "${type.slice(0, 80)}" does not exist`)
  return {
    type,
    key: readRequired(filter, 'key', readText),
    value: getOwnValue(filter, 'value') ?? null,
    operator: readOptional(filter, 'operator', readText),
    groupTypeIndex: readOptional(filter, 'group_type_index', readInteger),
  }
}

function isFilterType(text: string): text is FilterType {
  return (filterTypes as readonly string[]).includes(text)
}

function readVariant(value: JsonValue): { key: string; rolloutPercentage: number } {
  const variant = readObject(value, 'variants')
  return {
    key: readRequired(variant, 'key', readText),
    rolloutPercentage: readRequired(variant, 'rollout_percentage', readNumber),
  }
}

function readHoldout(filters: JsonObject): StoredFilters['holdout'] {
  const holdout = readOptional(filters, 'holdout', readObject)
  if (holdout === null) return null
  return {
    id: String(readRequired(holdout, 'id', readInteger)),
    exclusionPercentage: Math.min(100, Math.max(0, readRequired(holdout, 'exclusion_percentage', readNumber))),
  }
}

type Reader<T> = (value: JsonValue, name: string) => T

/** Reads a field; null when it is absent or null. */
function readOptional<T>(object: JsonObject, name: string, read: Reader<T>): T | null {
  const value = getOwnValue(object, name)
  return value === undefined || value === null ? null : read(value, name)
}

function readRequired<T>(object: JsonObject, name: string, read: Reader<T>): T {
  const value = getOwnValue(object, name)
  if (value === undefined || value === null) throw new UnreadableFilters(`"${name}" is missing`)
  return read(value, name)
}

function readObject(value: JsonValue, name: string): JsonObject {
  if (!isJsonObject(value)) throw new UnreadableFilters(`"${name}" is not an object`)
  return value
}

function readList(value: JsonValue, name: string): JsonValue[] {
  if (!Array.isArray(value)) throw new UnreadableFilters(`"${name}" is not a list`)
  return value
}

function readText(value: JsonValue, name: string): string {
  if (typeof value !== 'string') throw new UnreadableFilters(`"${name}" is not a string`)
  return value
}

function readBoolean(value: JsonValue, name: string): boolean {
  if (typeof value !== 'boolean') throw new UnreadableFilters(`"${name}" is not a boolean`)
  return value
}

function readNumber(value: JsonValue, name: string): number {
  const number = readJsonNumber(value)
  if (number === undefined) throw new UnreadableFilters(`"${name}" is not a number`)
  return number
}

function readInteger(value: JsonValue, name: string): number {
  const number = readNumber(value, name)
  if (!Number.isInteger(number)) throw new UnreadableFilters(`"${name}" is not a whole number`)
  return number
}
