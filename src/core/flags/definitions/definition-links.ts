// Finds what flags and cohorts refer to: the ids and indexes in their filters. Stored definitions may be older than our
// validation or have skipped it, so nothing here relies on a shape. What a reference means is decided when the definitions
// are compiled.

import { type GroupType, groupTypeCountMax } from '../../groups/group.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '../../json.ts'
import { cohortIdOf } from './cohort-tree.ts'
import { parseDependencyId } from './flag-dependencies.ts'
import { readConfigVersion } from './read-rules.ts'

export interface DefinitionReference {
  readonly kind: 'flag' | 'cohort' | 'group_type' | 'experiment'
  /** The id of what is referred to; for a group type its index, 0 to 4. */
  readonly id: number
  /** Path of the value that is the reference, such as `filters.groups.0.properties.1.value`. */
  readonly path: string
}

export interface LinkedDefinition {
  readonly id: number
  /** Key of a flag, name of a cohort. */
  readonly name: string
  readonly flagIds: readonly number[]
  readonly cohortIds: readonly number[]
  /** For a flag: the experiments that its rules belong to. */
  readonly experimentIds: readonly number[]
}

export interface DefinitionLinks {
  /** The project's revision before these links were read. */
  readonly revision: number
  readonly flags: readonly LinkedDefinition[]
  readonly cohorts: readonly LinkedDefinition[]
  readonly groupTypes: readonly Pick<GroupType, 'index' | 'name' | 'isBeingDeleted'>[]
  /** The project's experiments. */
  readonly experimentIds: readonly number[]
}

/** The references in a flag and its condition sets, or rules. Source: docs/wire/evaluation.md 4.2, 5.11, 5.12, 11.2. */
export function listReferencesOfFlag(filters: JsonValue): DefinitionReference[] {
  if (!isJsonObject(filters)) return []
  if (readConfigVersion(filters) === 2) return listRuleExperiments(filters)
  const sets = ['groups', 'super_groups'].flatMap(list =>
    toList(getOwnValue(filters, list)).flatMap((set, index) => listSetReferences(set, `filters.${list}.${index}`)),
  )
  return [...listGroupTypeReferences(filters, 'aggregation_group_type_index', 'filters'), ...sets]
}

function listRuleExperiments(filters: JsonObject): DefinitionReference[] {
  return toList(getOwnValue(filters, 'rules')).flatMap((rule, index) => {
    const id = isJsonObject(rule) ? readJsonNumber(getOwnValue(rule, 'experiment_id') ?? null) : undefined
    // Any other value makes the document unreadable, so it is not a reference.
    return Number.isSafeInteger(id)
      ? [{ kind: 'experiment', id: id!, path: `filters.rules.${index}.experiment_id` }]
      : []
  })
}

function listSetReferences(set: JsonValue, path: string): DefinitionReference[] {
  if (!isJsonObject(set)) return []
  const filters = toList(getOwnValue(set, 'properties')).flatMap((filter, at) => {
    const filterPath = `${path}.properties.${at}`
    const groupType = isJsonObject(filter) ? listGroupTypeReferences(filter, 'group_type_index', filterPath) : []
    return [...listFilterReferences(filter, filterPath), ...groupType]
  })
  return [...listGroupTypeReferences(set, 'aggregation_group_type_index', path), ...filters]
}

/** The references in a cohort's tree, however deep. Source: docs/wire/evaluation.md 5.11. */
export function listReferencesOfCohort(filters: JsonObject): DefinitionReference[] {
  const references: DefinitionReference[] = []
  const open: { entry: JsonValue | undefined; path: string }[] = [
    { entry: getOwnValue(filters, 'properties'), path: 'filters.properties' },
  ]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { entry, path } = next
    if (!isJsonObject(entry)) continue
    references.push(...listFilterReferences(entry, path))
    const values = getOwnValue(entry, 'values')
    if (!Array.isArray(values)) continue
    for (let index = values.length - 1; index >= 0; index--)
      open.push({ entry: values[index], path: `${path}.values.${index}` })
  }
  return references
}

/** The flags that each flag depends on: those that it tests, directly or through a cohort that it reaches. */
export function listFlagDependencies({ flags, cohorts }: DefinitionLinks): (flagId: number) => readonly number[] {
  const flagOf = new Map(flags.map(flag => [flag.id, flag]))
  const cohortOf = new Map(cohorts.map(cohort => [cohort.id, cohort]))
  return flagId => {
    const flag = flagOf.get(flagId)
    if (flag === undefined) return []
    const found = new Set(flag.flagIds)
    const reached = new Set(flag.cohortIds)
    // The loop adds to `reached`: iterating over a set also visits entries added during the iteration.
    for (const cohortId of reached) {
      const cohort = cohortOf.get(cohortId)
      for (const id of cohort?.flagIds ?? []) found.add(id)
      for (const id of cohort?.cohortIds ?? []) reached.add(id)
    }
    found.delete(flagId)
    return [...found]
  }
}

/**
 * The flags that references lead to, directly, through other flags or through cohorts.
 * @returns each flag's id with the path of the first reference that leads to it.
 */
export function findReachedFlags(
  references: readonly DefinitionReference[],
  { flags, cohorts }: Pick<DefinitionLinks, 'flags' | 'cohorts'>,
): ReadonlyMap<number, string> {
  const linksOf = {
    flag: new Map(flags.map(flag => [flag.id, flag])),
    cohort: new Map(cohorts.map(cohort => [cohort.id, cohort])),
  }
  const reached = { flag: new Map<number, string>(), cohort: new Map<number, string>() }
  const open = references.toReversed()
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { kind, id, path } = next
    if ((kind !== 'flag' && kind !== 'cohort') || reached[kind].has(id)) continue
    reached[kind].set(id, path)
    const links = linksOf[kind].get(id)
    for (const flagId of links?.flagIds ?? []) open.push({ kind: 'flag', id: flagId, path })
    for (const cohortId of links?.cohortIds ?? []) open.push({ kind: 'cohort', id: cohortId, path })
  }
  return reached.flag
}

/** Whether a flag is evaluated for groups of a type, or reads their properties. */
export function hasGroupTypeReference(filters: JsonValue, index: number): boolean {
  return listReferencesOfFlag(filters).some(({ kind, id }) => kind === 'group_type' && id === index)
}

export function createLinkedDefinition(
  id: number,
  name: string,
  references: readonly DefinitionReference[],
): LinkedDefinition {
  const listIds = (kind: DefinitionReference['kind']) => [
    ...new Set(references.filter(reference => reference.kind === kind).map(reference => reference.id)),
  ]
  return { id, name, flagIds: listIds('flag'), cohortIds: listIds('cohort'), experimentIds: listIds('experiment') }
}

function listFilterReferences(filter: JsonValue, path: string): DefinitionReference[] {
  if (!isJsonObject(filter)) return []
  const type = getOwnValue(filter, 'type')
  if (type === 'cohort') {
    const id = cohortIdOf(getOwnValue(filter, 'value') ?? null)
    return id === null ? [] : [{ kind: 'cohort', id, path: `${path}.value` }]
  }
  if (type !== 'flag') return []
  const key = getOwnValue(filter, 'key')
  const id = typeof key === 'string' ? parseDependencyId(key) : null
  return id === null ? [] : [{ kind: 'flag', id, path: `${path}.key` }]
}

/** Ignores an index that no project can have: validation refuses it anyway. */
function listGroupTypeReferences(holder: JsonObject, field: string, path: string): DefinitionReference[] {
  const index = readJsonNumber(getOwnValue(holder, field) ?? null)
  const isIndex = index !== undefined && Number.isInteger(index) && index >= 0 && index < groupTypeCountMax
  return isIndex ? [{ kind: 'group_type', id: index, path: `${path}.${field}` }] : []
}

function toList(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}
