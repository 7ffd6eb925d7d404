// Converts filters from before `groups` to the current form before they are stored; the evaluator knows only `groups`.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '../../json.ts'
import { readConfigVersion } from './read-rules.ts'

/**
 * Returns filters with `groups`, even `groups: []`, unchanged. Other filters get a single set `{properties:
 * filters.properties or [], rollout_percentage: the flag's own}`, in which a filter without `type` becomes a `person`
 * filter; `filters.properties` itself is removed. A document of another version than 1 is stored as it is.
 * @param legacyRolloutPercentage the flag's own `rollout_percentage`, any JSON; undefined when it has none (= 100 %).
 * Source: docs/wire/evaluation.md 4.2.
 */
export function normalizeFilters(filters: JsonObject, legacyRolloutPercentage: JsonValue | undefined): JsonObject {
  if (getOwnValue(filters, 'groups') !== undefined || readConfigVersion(filters) !== 1) return filters
  const properties = getOwnValue(filters, 'properties') ?? []
  const set: JsonObject = { properties: Array.isArray(properties) ? properties.map(addDefaultType) : properties }
  if (legacyRolloutPercentage !== undefined) set.rollout_percentage = legacyRolloutPercentage
  const normalized: JsonObject = { groups: [set] }
  for (const key of Object.keys(filters)) if (key !== 'properties') setOwnValue(normalized, key, filters[key]!)
  return normalized
}

function addDefaultType(filter: JsonValue): JsonValue {
  if (!isJsonObject(filter) || (getOwnValue(filter, 'type') ?? null) !== null) return filter
  const typed: JsonObject = {}
  for (const [key, value] of Object.entries(filter)) setOwnValue(typed, key, value)
  typed.type = 'person'
  return typed
}
