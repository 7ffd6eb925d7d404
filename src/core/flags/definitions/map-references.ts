// Replaces the ids that the filters of a flag or cohort refer to, for a copy in another project. Everything else stays
// as stored, readable or not. Source: docs/wire/evaluation.md 4.2, 5.11, 5.12.

import { isJsonObject, type JsonObject, type JsonValue, numberOf, setOwn } from '../../json.ts'
import { cohortIdOf } from './cohort-tree.ts'
import { dependencyId } from './flag-dependencies.ts'

export interface ReferenceMaps {
  /** Each returns the new id, or the same one to keep it. */
  readonly cohort: (id: number) => number
  readonly flag: (id: number) => number
  readonly groupType: (index: number) => number
}

/** The fields that may contain references. Payloads and variants are the client's own JSON and contain none. */
const referringFields = ['groups', 'super_groups', 'properties', 'values']
const groupTypeFields = ['aggregation_group_type_index', 'group_type_index']

export function mapReferences(filters: JsonObject, maps: ReferenceMaps): JsonObject {
  const mapped: JsonObject = {}
  for (const [name, value] of Object.entries(filters)) setOwn(mapped, name, mapField(name, value, maps))
  const type = filters.type
  if (type === 'cohort') {
    const id = cohortIdOf(filters.value ?? null)
    if (id !== null) mapped.value = maps.cohort(id)
  } else if (type === 'flag' && typeof filters.key === 'string') {
    const id = dependencyId(filters.key)
    if (id !== null && id >= 0) mapped.key = String(maps.flag(id))
  }
  return mapped
}

function mapField(name: string, value: JsonValue, maps: ReferenceMaps): JsonValue {
  if (groupTypeFields.includes(name)) {
    const index = numberOf(value)
    return index === undefined ? value : maps.groupType(index)
  }
  if (!referringFields.includes(name)) return value
  if (isJsonObject(value)) return mapReferences(value, maps)
  if (!Array.isArray(value)) return value
  return value.map(entry => (isJsonObject(entry) ? mapReferences(entry, maps) : entry))
}
