// Reads the files of `pennon flags import`: a file of `pennon flags export`, or lists from PostHog's API, in one or several
// pages.

import { readFileSync } from 'node:fs'
import { normalizeFilters } from '#core/flags/definitions/normalize-filters.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { copyExperimentsFrom } from '#core/flags/definitions/rule-ids.ts'
import { formatCount } from '#core/format-count.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, parseJson, readJsonNumber } from '#core/json.ts'
import { findRepeatedKey, isNestedDeeperThan } from '#core/json-text.ts'
import { decodeFlagFile, type FileFlag, isFlagFile, isNotDeleted } from '#wire/management/flags/flag-file.ts'
import { ClientError } from '../client/private-api.ts'
import { type NamedLists, replaceIdsByNames } from './export-flags.ts'

export interface ListFiles {
  /** Files with PostHog's list of cohorts. */
  readonly cohorts?: readonly string[]
  /** Files with PostHog's list of group types. */
  readonly groupTypes?: readonly string[]
}

/** @throws ClientError that names the file and the place in it. */
export function readFlagFiles(paths: readonly string[], { cohorts = [], groupTypes = [] }: ListFiles): NamedLists {
  const read = paths.map(path => ({ path, value: readJson(path) }))
  const own = read.find(({ value }) => isFlagFile(value))
  if (own !== undefined) {
    if (read.length > 1 || cohorts.length > 0 || groupTypes.length > 0)
      throw new ClientError(`${own.path} is a complete file from pennon flags export: pass it alone.`)
    const decoded = decodeFlagFile(own.value as JsonObject)
    if (!decoded.ok) throw new ClientError(`${own.path}: ${decoded.error}`)
    const { flags, cohorts: ofFile } = decoded.value
    const file = {
      ...decoded.value,
      // Removes the filters of static cohorts, since they have no meaning.
      cohorts: ofFile.map(cohort => (cohort.is_static ? { ...cohort, filters: {} } : cohort)),
      flags: flags.map(flag => removeExperiments(normalizeFlag(flag))),
    }
    return { file, notes: [] }
  }
  const flags = read.flatMap(({ path, value }) => readRows(path, value, 'flags', ['key', 'active', 'filters']))
  const { file, notes } = replaceIdsByNames({
    flags: flags.map(normalizeFlag),
    cohorts: cohorts.flatMap(path => readRows(path, readJson(path), 'cohorts', ['id', 'name', 'is_static'])),
    groupTypes: groupTypes.flatMap(path =>
      readRows(path, readJson(path), 'group types', ['group_type', 'group_type_index']),
    ),
  })
  const deletedCount = flags.filter(flag => !isNotDeleted(flag)).length
  return {
    file,
    notes: [
      ...notes,
      ...(deletedCount === 0 ? [] : [`skipped: ${formatCount(deletedCount, 'deleted flag')}.`]),
      ...describeMissingPages(
        read.map(({ value }) => value),
        flags.length,
      ),
    ],
  }
}

/** The deepest nesting accepted: more than any definition has, and far less than recursive code can handle. */
const nestingMax = 400

function readJson(path: string): JsonValue {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new ClientError(code === 'ENOENT' ? `${path} does not exist.` : `${path} cannot be read: ${code ?? cause}.`)
  }
  if (isNestedDeeperThan(text, nestingMax)) throw new ClientError(`${path} is nested too deeply.`)
  let value: JsonValue
  try {
    value = parseJson(text)
  } catch {
    throw new ClientError(`${path} is not valid JSON.`)
  }
  const repeated = findRepeatedKey(text)
  if (repeated !== null) throw new ClientError(`${path} has an object with the key "${repeated.slice(0, 80)}" twice.`)
  return value
}

/** @param names the fields that each row must have. */
function readRows(path: string, value: JsonValue, what: string, names: readonly string[]): JsonObject[] {
  const results = isJsonObject(value) ? getOwnValue(value, 'results') : value
  if (!Array.isArray(results))
    throw new ClientError(`${path} is neither a file from pennon flags export nor a list from PostHog's API.`)
  return results.map((row: JsonValue, index) => {
    const lacked = names.find(name => !isJsonObject(row) || (getOwnValue(row, name) ?? null) === null)
    if (lacked !== undefined)
      throw new ClientError(`${path} is not a list of ${what}: entry ${index} has no ${lacked}.`)
    return row as JsonObject
  })
}

/** Converts filters older than condition sets, as PostHog and Pennon do when they store them. */
function normalizeFlag<T extends JsonObject>(flag: T): T {
  const { filters, rollout_percentage: percentage } = flag
  if (!isJsonObject(filters)) return flag
  return { ...flag, filters: normalizeFilters(filters, percentage) }
}

/**
 * Removes experiments, since they belong to one project: a flag with experiments in a file would never equal the stored
 * flag. Our exports have none.
 */
function removeExperiments(flag: FileFlag): FileFlag {
  return readConfigVersion(flag.filters) === 2 ? { ...flag, filters: copyExperimentsFrom(flag.filters, null) } : flag
}

/** Describes how many flags are missing: each page of the API has the total number of flags. */
function describeMissingPages(pages: readonly JsonValue[], rowCount: number): string[] {
  const counts = pages.map(page =>
    isJsonObject(page) ? readJsonNumber(getOwnValue(page, 'count') ?? null) : undefined,
  )
  const said = Math.max(...counts.map(count => count ?? 0))
  return said > rowCount
    ? [`the list should have ${formatCount(said, 'flag')}, but the files have ${rowCount}: pass all pages.`]
    : []
}
