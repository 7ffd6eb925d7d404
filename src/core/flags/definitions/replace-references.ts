// Replaces what the filters of a flag or cohort refer to: ids for a copy in another project, names for a file. Everything
// else stays as stored, readable or not. Source: docs/wire/evaluation.md 4.2, 5.11, 5.12.

import { isJsonObject, type JsonObject, type JsonValue, readJsonNumber, setOwnValue } from '../../json.ts'
import { cohortIdOf } from './cohort-tree.ts'
import { parseDependencyId } from './flag-dependencies.ts'

export interface ReferenceMaps {
  /** Each function returns the new id for an id, or the same id to keep the reference. */
  readonly cohort: (id: number) => number
  readonly flag: (id: number) => number
  readonly groupType: (index: number) => number
}

/** Each function receives the current reference and its path, such as `filters.groups.0.properties.1.value`. */
export interface ReferenceValueMaps {
  readonly cohort: (value: JsonValue, path: string) => JsonValue
  readonly flag: (key: string, path: string) => string
  readonly groupType: (value: JsonValue, path: string) => JsonValue
}

/** The fields that may contain references. Payloads and variants are the client's own JSON and contain none. */
const referringFields = ['groups', 'super_groups', 'properties', 'values']
const groupTypeFields = ['aggregation_group_type_index', 'group_type_index']

export function replaceReferences(filters: JsonObject, maps: ReferenceMaps): JsonObject {
  return replaceReferenceValues(filters, {
    cohort: value => {
      const id = cohortIdOf(value)
      return id === null ? value : maps.cohort(id)
    },
    flag: key => {
      const id = parseDependencyId(key)
      return id === null || id < 0 ? key : String(maps.flag(id))
    },
    groupType: value => {
      const index = readJsonNumber(value)
      return index === undefined ? value : maps.groupType(index)
    },
  })
}

/** Replaces references that need not be ids, since a file has names instead. */
export function replaceReferenceValues(filters: JsonObject, maps: ReferenceValueMaps, path = 'filters'): JsonObject {
  const mapped: JsonObject = {}
  for (const [name, value] of Object.entries(filters)) setOwnValue(mapped, name, mapField(name, value, maps, path))
  const { type, key, value } = filters
  if (type === 'cohort') {
    if (value !== undefined) mapped.value = maps.cohort(value, `${path}.value`)
  } else if (type === 'flag' && typeof key === 'string') mapped.key = maps.flag(key, `${path}.key`)
  return mapped
}

function mapField(name: string, value: JsonValue, maps: ReferenceValueMaps, path: string): JsonValue {
  const at = `${path}.${name}`
  if (groupTypeFields.includes(name)) return value === null ? value : maps.groupType(value, at)
  if (!referringFields.includes(name)) return value
  if (isJsonObject(value)) return replaceReferenceValues(value, maps, at)
  if (!Array.isArray(value)) return value
  return value.map((entry, index) =>
    isJsonObject(entry) ? replaceReferenceValues(entry, maps, `${at}.${index}`) : entry,
  )
}
