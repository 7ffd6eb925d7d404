// Flags and cohorts of a project as a file: what `pennon flags export` writes and `import` reads. Filters have names in
// place of ids: keys of flags, names of cohorts and of group types, so that a file means the same in every project. Source:
// ours, docs/guides/flags.md.

import { cohortIdOf } from '#core/flags/definitions/cohort-tree.ts'
import { parseDependencyId } from '#core/flags/definitions/flag-dependencies.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { type ReferenceValueMaps, replaceReferenceValues } from '#core/flags/definitions/replace-references.ts'
import { copyExperimentsFrom } from '#core/flags/definitions/rule-ids.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'

const format = 'pennon_flags'
const formatVersion = 1

export type FileFlag = JsonObject & { readonly key: string; readonly active: boolean; readonly filters: JsonObject }
export type FileCohort = JsonObject & {
  readonly name: string
  readonly is_static: boolean
  readonly filters: JsonObject
}

export interface FlagFile {
  /** Names of the group types that the flags use. */
  readonly groupTypes: readonly string[]
  readonly cohorts: readonly FileCohort[]
  readonly flags: readonly FileFlag[]
}

/** Lists as the private API answers them, Pennon's or PostHog's. */
export interface ApiLists {
  readonly flags: readonly JsonObject[]
  readonly cohorts: readonly JsonObject[]
  readonly groupTypes: readonly JsonObject[]
}

/** The fields of a flag in a file, in their order. A file never contains encrypted payloads. */
const flagFields = [
  ...['key', 'name', 'active', 'archived', 'tags', 'evaluation_runtime', 'evaluation_contexts'],
  ...['bucketing_identifier', 'ensure_experience_continuity', 'is_remote_configuration', 'filters'],
]
/** The values that null stands for, also in fields that older versions of PostHog omit. */
const defaults: JsonObject = {
  ...{ name: '', description: '', archived: false, tags: [], evaluation_runtime: 'all', evaluation_contexts: [] },
  ...{ bucketing_identifier: null, ensure_experience_continuity: false, is_remote_configuration: false },
}
const cohortFields = ['name', 'description', 'is_static', 'filters']

/** Text in a form that can be compared line by line: sorted by key and name, and the same for the same definitions. */
export function encodeFlagFile({ flags, cohorts, groupTypes }: FlagFile): string {
  const file = {
    ...{ format, format_version: formatVersion },
    group_types: groupTypes.toSorted(),
    cohorts: cohorts.toSorted((a, b) => compareKeys(a.name, b.name)),
    flags: flags.toSorted((a, b) => compareKeys(a.key, b.key)),
  }
  return `${JSON.stringify(file, null, 2)}\n`
}

export function isFlagFile(value: JsonValue): value is JsonObject {
  return isJsonObject(value) && getOwnValue(value, 'format') === format
}

/** @returns the file, or a message that says what is wrong with it. Unknown fields are refused by name. */
export function decodeFlagFile(file: JsonObject): Result<FlagFile, string> {
  if (readJsonNumber(file.format_version ?? null) !== formatVersion)
    return err(
      `Unsupported format_version, expected ${formatVersion}: the file was exported by another version of Pennon.`,
    )
  const unknown = Object.keys(file).find(
    name => !['format', 'format_version', 'group_types', 'cohorts', 'flags'].includes(name),
  )
  if (unknown !== undefined) return err(`Unknown field: ${unknown}.`)
  const { group_types: groupTypes = [], cohorts = [], flags = [] } = file
  for (const [name, list] of Object.entries({ group_types: groupTypes, cohorts, flags }))
    if (!Array.isArray(list)) return err(`${name} is not a list.`)
  for (const [index, cohort] of (cohorts as readonly JsonValue[]).entries()) {
    const fault = findFault(cohort, cohortFields, { name: 'string', is_static: 'boolean' })
    if (fault !== null) return err(`cohorts.${index}${formatName(cohort, 'name')}: ${fault}`)
  }
  for (const [index, flag] of (flags as readonly JsonValue[]).entries()) {
    const fault = findFault(flag, flagFields, { key: 'string', active: 'boolean' })
    if (fault !== null) return err(`flags.${index}${formatName(flag, 'key')}: ${fault}`)
  }
  return ok({
    groupTypes: (groupTypes as readonly JsonValue[]).filter(name => typeof name === 'string'),
    cohorts: (cohorts as unknown as readonly FileCohort[]).map(applyDefaults),
    flags: (flags as unknown as readonly FileFlag[]).map(applyDefaults),
  })
}

/** Replaces null by the default; omitted fields stay omitted. */
function applyDefaults<T extends JsonObject>(object: T): T {
  const entries = Object.entries(object).map(([name, value]) => [name, value ?? getOwnValue(defaults, name) ?? null])
  return Object.fromEntries(entries) as T
}

function findFault(
  value: JsonValue,
  known: readonly string[],
  required: Readonly<Record<string, 'string' | 'boolean'>>,
): string | null {
  if (!isJsonObject(value)) return 'is not an object.'
  const unknown = Object.keys(value).find(name => !known.includes(name))
  if (unknown !== undefined) return `unknown field: ${unknown}.`
  for (const [name, type] of Object.entries(required))
    if (typeof getOwnValue(value, name) !== type) return `${name} is missing or not a ${type}.`
  return isJsonObject(getOwnValue(value, 'filters')) ? null : 'filters is missing or not an object.'
}

function formatName(value: JsonValue, field: string): string {
  const name = isJsonObject(value) ? getOwnValue(value, field) : undefined
  return typeof name === 'string' ? ` (${name})` : ''
}

/**
 * Converts definitions from an API's answer to the form of a file. A reference to something that no list contains stays
 * an id.
 */
export interface ReferenceNamer {
  flag(flag: JsonObject): FileFlag
  cohort(cohort: JsonObject): FileCohort
}

export function createReferenceNamer({ flags, cohorts, groupTypes }: ApiLists): ReferenceNamer {
  const keyOf = new Map(flags.filter(isNotDeleted).map(({ id, key }) => [readJsonNumber(id ?? null), key]))
  const nameOfCohort = new Map(cohorts.filter(isNotDeleted).map(({ id, name }) => [readJsonNumber(id ?? null), name]))
  const nameOfType = new Map(
    groupTypes.map(({ group_type_index: index, group_type: name }) => [readJsonNumber(index ?? null), name]),
  )
  const maps: ReferenceValueMaps = {
    cohort: value => nameOfCohort.get(cohortIdOf(value) ?? undefined) ?? value,
    flag: key => String(keyOf.get(parseDependencyId(key) ?? undefined) ?? key),
    groupType: value => nameOfType.get(readJsonNumber(value)) ?? value,
  }
  return {
    flag: flag => {
      const contexts = flag.evaluation_contexts ?? flag.evaluation_tags ?? null
      const filters = replaceIdsByNames(toObject(flag.filters), maps)
      return pickMembers({ ...flag, evaluation_contexts: contexts, filters }, flagFields) as FileFlag
    },
    cohort: cohort => {
      const isStatic = cohort.is_static === true
      // The filters of a static cohort have no effect, so they are left out.
      const filters = isStatic ? {} : replaceReferenceValues(toObject(cohort.filters), maps)
      return pickMembers({ ...cohort, is_static: isStatic, filters }, cohortFields) as FileCohort
    },
  }
}

/** Whether a definition of a list is not deleted. */
export function isNotDeleted({ deleted }: JsonObject): boolean {
  return deleted !== true
}

/**
 * The filters with names instead of ids. The experiments of rules are removed, because a file contains no experiments;
 * rules refer to nothing else.
 */
function replaceIdsByNames(filters: JsonObject, maps: ReferenceValueMaps): JsonObject {
  return readConfigVersion(filters) === 2 ? copyExperimentsFrom(filters, null) : replaceReferenceValues(filters, maps)
}

/** A reference within filters, by name, with its place. */
export interface NamedReference {
  readonly kind: 'flag' | 'cohort' | 'group_type'
  /** Not a text if no name was found for the reference. */
  readonly name: JsonValue
  readonly path: string
}

export function listReferencesByName(filters: JsonObject): NamedReference[] {
  if (readConfigVersion(filters) === 2) return []
  const found: NamedReference[] = []
  const note =
    (kind: NamedReference['kind']) =>
    <T extends JsonValue>(name: T, path: string): T => {
      found.push({ kind, name, path })
      return name
    }
  replaceReferenceValues(filters, { cohort: note('cohort'), flag: note('flag'), groupType: note('group_type') })
  return found
}

/** The object's fields with these names, and the defaults of those that it lacks. */
function pickMembers(object: JsonObject, names: readonly string[]): JsonObject {
  const entries = names.map(name => [name, getOwnValue(object, name) ?? getOwnValue(defaults, name)] as const)
  return Object.fromEntries(entries.filter(entry => entry[1] !== undefined) as [string, JsonValue][])
}

function toObject(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

function compareKeys(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
