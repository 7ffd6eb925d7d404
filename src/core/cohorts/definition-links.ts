// What flags and cohorts refer to: the ids that stand in their filters, whatever else stands there. Stored definitions may
// be older than our validation or have skipped it, so nothing here expects a shape. What a reference does is decided where
// definitions are compiled.

import { dependencyId } from '../flags/flag-dependencies.ts'
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.ts'
import { cohortIdOf } from './cohort-tree.ts'

export interface DefinitionReference {
  readonly kind: 'flag' | 'cohort'
  readonly id: number
  /** Path of the value that names it, such as `filters.groups.0.properties.1.value`. */
  readonly path: string
}

export interface LinkedDefinition {
  readonly id: number
  /** Key of a flag, name of a cohort. */
  readonly name: string
  readonly flagIds: readonly number[]
  readonly cohortIds: readonly number[]
}

export interface DefinitionLinks {
  /** The project's revision before they were read. */
  readonly revision: number
  readonly flags: readonly LinkedDefinition[]
  readonly cohorts: readonly LinkedDefinition[]
}

/** References in the condition sets of a flag. Source: docs/wire/evaluation.md 5.11, 5.12. */
export function referencesOfFlag(filters: JsonValue): DefinitionReference[] {
  if (!isJsonObject(filters)) return []
  return ['groups', 'super_groups'].flatMap(list =>
    listOf(ownValue(filters, list)).flatMap((set, index) =>
      listOf(isJsonObject(set) ? ownValue(set, 'properties') : undefined).flatMap((filter, at) =>
        referenceOf(filter, `filters.${list}.${index}.properties.${at}`),
      ),
    ),
  )
}

/** References in the tree of a cohort, however deep. Source: docs/wire/evaluation.md 5.11. */
export function referencesOfCohort(filters: JsonObject): DefinitionReference[] {
  const references: DefinitionReference[] = []
  const open: { entry: JsonValue | undefined; path: string }[] = [
    { entry: ownValue(filters, 'properties'), path: 'filters.properties' },
  ]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { entry, path } = next
    if (!isJsonObject(entry)) continue
    references.push(...referenceOf(entry, path))
    const values = ownValue(entry, 'values')
    if (!Array.isArray(values)) continue
    for (let index = values.length - 1; index >= 0; index--)
      open.push({ entry: values[index], path: `${path}.values.${index}` })
  }
  return references
}

export function linkedDefinition(
  id: number,
  name: string,
  references: readonly DefinitionReference[],
): LinkedDefinition {
  const idsOf = (kind: DefinitionReference['kind']) => [
    ...new Set(references.filter(reference => reference.kind === kind).map(reference => reference.id)),
  ]
  return { id, name, flagIds: idsOf('flag'), cohortIds: idsOf('cohort') }
}

function referenceOf(filter: JsonValue, path: string): DefinitionReference[] {
  if (!isJsonObject(filter)) return []
  const type = ownValue(filter, 'type')
  if (type === 'cohort') {
    const id = cohortIdOf(ownValue(filter, 'value') ?? null)
    return id === null ? [] : [{ kind: 'cohort', id, path: `${path}.value` }]
  }
  if (type !== 'flag') return []
  const key = ownValue(filter, 'key')
  const id = typeof key === 'string' ? dependencyId(key) : null
  return id === null ? [] : [{ kind: 'flag', id, path: `${path}.key` }]
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}
