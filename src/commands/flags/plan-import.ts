// Plans what an import writes and in which order, from the file and the project's definitions. References are resolved by
// name, in the file or in the project. All problems are reported before the first write.

import type { TSchema } from 'typebox'
import type { FlagIssue } from '#core/flags/definitions/flag-issue.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { replaceReferenceValues } from '#core/flags/definitions/replace-references.ts'
import { copyExperimentsFrom } from '#core/flags/definitions/rule-ids.ts'
import { validateCohortFilters } from '#core/flags/definitions/validate-cohort.ts'
import { findArchivedIssues, validateFlag } from '#core/flags/definitions/validate-flag.ts'
import { getOwnValue, type JsonObject, type JsonValue, readJsonNumber } from '#core/json.ts'
import { diffJson, type JsonChange } from '#core/json-diff.ts'
import { managementBodyBytesMax } from '#http/management/kit/endpoint.ts'
import { createBodyParser } from '#http/management/kit/request-json.ts'
import {
  type ApiLists,
  createReferenceNamer,
  type FileCohort,
  type FileFlag,
  type FlagFile,
  isNotDeleted,
  listReferencesByName,
} from '#wire/management/flags/flag-file.ts'
import { createFlagSchema, decodeFlag, type UpdateFlagJson, updateFlagSchema } from '#wire/management/flags/flags.ts'
import { createCohortSchema, updateCohortSchema } from '#wire/management/persons/cohorts.ts'

interface Write {
  readonly name: string
  /** The definition as the private API returns it; null if the project does not have it. */
  readonly before: JsonObject | null
  /** Empty if `before` is null. */
  readonly changes: readonly JsonChange[]
}
export type PlannedFlagWrite = Write & { readonly kind: 'flag'; readonly wanted: FileFlag }
export type PlannedCohortWrite = Write & { readonly kind: 'cohort'; readonly wanted: FileCohort }
export type PlannedWrite = PlannedFlagWrite | PlannedCohortWrite

export interface FlagImportPlan {
  /** Each definition comes after the definitions that it refers to. */
  readonly writes: readonly PlannedWrite[]
  /** Definitions that the project already has unchanged. */
  readonly same: readonly PlannedWrite[]
  /** If there are problems, nothing may be written. Each names the flag or cohort and the field. */
  readonly problems: readonly string[]
  readonly ids: ReferenceIds
}

export async function planFlagImport(file: FlagFile, existing: ApiLists): Promise<FlagImportPlan> {
  const naming = createReferenceNamer(existing)
  const flagsThere = new Map(existing.flags.filter(isNotDeleted).map(flag => [String(flag.key), flag]))
  const cohortsThere = new Map<string, JsonObject[]>()
  for (const cohort of existing.cohorts.filter(isNotDeleted)) {
    const name = String(cohort.name)
    cohortsThere.set(name, [...(cohortsThere.get(name) ?? []), cohort])
  }
  const problems: string[] = []
  const cohorts = file.cohorts.map((wanted): PlannedCohortWrite => {
    const found = cohortsThere.get(wanted.name) ?? []
    if (found.length > 1)
      problems.push(`cohort "${wanted.name}": the project has ${found.length} cohorts with this name.`)
    const before = found[0] ?? null
    const named = before === null ? null : naming.cohort(before)
    if (named !== null && named.is_static !== wanted.is_static)
      problems.push(`cohort "${wanted.name}": is_static is ${named.is_static} in the project, and cannot be changed.`)
    return { kind: 'cohort', name: wanted.name, wanted, before, changes: listChanges(named, wanted) }
  })
  const flags = file.flags.map((wanted): PlannedFlagWrite => {
    const before = flagsThere.get(wanted.key) ?? null
    const changes = listChanges(before === null ? null : naming.flag(before), wanted)
    return { kind: 'flag', name: wanted.key, wanted, before, changes }
  })
  const all: PlannedWrite[] = [...cohorts, ...flags]
  for (const name of findRepeated(all.map(formatDefinitionTitle))) problems.push(`${name}: appears twice in the file.`)
  const ids = new ReferenceIds(existing, cohortsThere)
  const isToWrite = ({ before, changes }: PlannedWrite) => before === null || changes.length > 0
  const toWrite = all.filter(isToWrite)
  const planned = new Set(all.map(formatDefinitionTitle))
  for (const write of toWrite) problems.push(...findReferenceProblems(write, ids, planned))
  // With unresolved references, other checks would report misleading problems.
  if (problems.length === 0)
    for (const write of toWrite)
      for (const fault of await findRequestProblems(write, ids))
        problems.push(`${formatDefinitionTitle(write)}: ${fault}`)
  const graph = new Map<string, JsonObject>()
  for (const flag of flagsThere.values())
    graph.set(formatDefinitionTitle({ kind: 'flag', name: String(flag.key) }), naming.flag(flag).filters)
  for (const [name, [cohort]] of cohortsThere)
    graph.set(formatDefinitionTitle({ kind: 'cohort', name }), naming.cohort(cohort!).filters)
  for (const write of all) graph.set(formatDefinitionTitle(write), write.wanted.filters)
  return {
    writes: problems.length > 0 ? toWrite : sortByReferences(toWrite, graph, problems),
    same: all.filter(write => !isToWrite(write)),
    problems,
    ids,
  }
}

export function formatDefinitionTitle({ kind, name }: Pick<PlannedWrite, 'kind' | 'name'>): string {
  return kind === 'flag' ? `flag ${name}` : `cohort "${name}"`
}

/** Lists the changes of an import. Fields that the file does not have stay unchanged. */
function listChanges(before: JsonObject | null, wanted: JsonObject): JsonChange[] {
  if (before === null) return []
  return Object.keys(wanted).flatMap(field => {
    const [now, then] = [getOwnValue(before, field) ?? null, wanted[field] ?? null]
    return diffJson({ [field]: now }, { [field]: then })
  })
}

function findRepeated(names: readonly string[]): Set<string> {
  const seen = new Set<string>()
  return new Set(names.filter(name => seen.size === seen.add(name).size))
}

/** The ids of definitions by name: those that were in the project, and those that this import has written. */
export class ReferenceIds {
  readonly #ids = new Map<string, number>()

  constructor({ flags, groupTypes }: ApiLists, cohorts: ReadonlyMap<string, readonly JsonObject[]>) {
    for (const { key, id } of flags.filter(isNotDeleted)) this.note('flag', String(key), id)
    for (const [name, [cohort]] of cohorts) this.note('cohort', name, cohort!.id)
    for (const type of groupTypes) this.note('group_type', String(type.group_type), type.group_type_index)
  }

  note(kind: string, name: string, id: JsonValue | undefined): void {
    const number = readJsonNumber(id ?? null)
    if (number !== undefined) this.#ids.set(`${kind} ${name}`, number)
  }

  find(kind: string, name: JsonValue): number | undefined {
    return typeof name === 'string' ? this.#ids.get(`${kind} ${name}`) : undefined
  }

  /** Whether everything that the filters refer to exists. */
  areKnown(filters: JsonObject): boolean {
    return listReferencesByName(filters).every(({ kind, name }) => this.find(kind, name) !== undefined)
  }

  /** The filters as the project stores them. References to unwritten definitions get an unused id. */
  resolve(filters: JsonObject): JsonObject {
    return replaceReferenceValues(filters, {
      cohort: name => this.find('cohort', name) ?? unwrittenId,
      flag: key => String(this.find('flag', key) ?? unwrittenId),
      groupType: name => this.find('group_type', name) ?? name,
    })
  }
}

const unwrittenId = 2 ** 31 - 1

function findReferenceProblems(write: PlannedWrite, ids: ReferenceIds, planned: ReadonlySet<string>): string[] {
  return listReferencesByName(write.wanted.filters).flatMap(({ kind, name, path }) => {
    if (ids.find(kind, name) !== undefined) return []
    if (kind !== 'group_type' && typeof name === 'string' && planned.has(formatDefinitionTitle({ kind, name })))
      return []
    return [`${formatDefinitionTitle(write)}: ${path}: ${missingReferenceMessages[kind](name)}`]
  })
}

const missingReferenceMessages = {
  flag: (name: JsonValue) => `neither the file nor the project has a flag ${name}.`,
  cohort: (name: JsonValue) =>
    isId(name)
      ? `unknown cohort ${name}: pass PostHog's list of cohorts with --cohorts.`
      : `neither the file nor the project has a cohort "${name}".`,
  group_type: (name: JsonValue) =>
    isId(name)
      ? `unknown group type ${name}: pass PostHog's list of group types with --group-types.`
      : `the project has no group type "${name}"; it is created by the first event of such a group.`,
}

function isId(name: JsonValue): boolean {
  return typeof name !== 'string' || /^\d+$/.test(name)
}

const createManagementParser = (schema: TSchema) =>
  createBodyParser(schema, null, { jsonBytesMax: managementBodyBytesMax, takesForms: false })
const bodyParsers = {
  flag: { create: createManagementParser(createFlagSchema), update: createManagementParser(updateFlagSchema) },
  cohort: { create: createManagementParser(createCohortSchema), update: createManagementParser(updateCohortSchema) },
}

/** The problems that the instance would report and that the request alone reveals, each with its field. */
async function findRequestProblems(write: PlannedWrite, ids: ReferenceIds): Promise<string[]> {
  const { kind, before } = write
  const body = buildWriteBody(write, ids)
  const parsed = await bodyParsers[kind][before === null ? 'create' : 'update'](Buffer.from(JSON.stringify(body)), '')
  if (!parsed.ok) return [`${parsed.error.attr}: ${parsed.error.detail}`]
  const { filters } = body
  if (kind === 'cohort') return describeIssues(filters === undefined ? [] : validateCohortFilters(filters))
  const fields = decodeFlag(body as UpdateFlagJson)
  const stored = before === null ? null : (before.filters as JsonObject)
  const current = before === null ? undefined : { archived: before.archived === true }
  return describeIssues([...validateFlag(fields, stored), ...findArchivedIssues(fields, current)])
}

function describeIssues(issues: readonly FlagIssue[]): string[] {
  return issues.map(({ path, message }) => `${path}: ${message}`)
}

/** The longest chain of references between cohorts and flags. No project needs nearly as many. */
const chainLengthMax = 500

/**
 * Sorts writes so that each follows the definitions it refers to. Adds a problem for a cycle, for a chain that is too long,
 * and for a filter that leads to a flag with rules.
 * @param graph the filters of all flags and cohorts after the import, by title.
 */
function sortByReferences(
  writes: readonly PlannedWrite[],
  graph: ReadonlyMap<string, JsonObject>,
  problems: string[],
): PlannedWrite[] {
  const byTitle = new Map(writes.map(write => [formatDefinitionTitle(write), write]))
  const ordered: PlannedWrite[] = []
  /**
   * Maps the title of a visited definition to the flag with rules that it leads to (or that it is); null if there is none.
   */
  const rulesReachedFrom = new Map<string, string | null>()
  const visit = (title: string, chain: readonly string[]): string | null => {
    const known = rulesReachedFrom.get(title)
    if (known !== undefined) return known
    const filters = graph.get(title)
    if (filters === undefined) return null
    if (chain.includes(title)) {
      problems.push(`${[...chain.slice(chain.indexOf(title)), title].join(' → ')}: each refers to the next.`)
      return null
    }
    if (chain.length === chainLengthMax) {
      problems.push(`${chain[0]}: more than ${chainLengthMax} cohorts and flags depend on each other in a chain.`)
      return null
    }
    const write = byTitle.get(title)
    let reachedRules = readConfigVersion(filters) === 1 ? null : title
    for (const { kind, name, path } of listReferencesByName(filters)) {
      if (kind === 'group_type' || typeof name !== 'string') continue
      const reached = problems.length === 0 ? visit(formatDefinitionTitle({ kind, name }), [...chain, title]) : null
      if (reached === null) continue
      if (write !== undefined)
        problems.push(
          `${title}: ${path}: it refers to the ${reached}, a version 2 flag (with rules), which filters cannot test.`,
        )
      reachedRules ??= reached
    }
    rulesReachedFrom.set(title, reachedRules)
    if (write !== undefined) ordered.push(write)
    return reachedRules
  }
  for (const write of writes) if (problems.length === 0) visit(formatDefinitionTitle(write), [])
  return ordered
}

/** Rules are stored unchanged, since their seeds decide who gets which value. */
export function hasFlagRules({ wanted }: PlannedFlagWrite): boolean {
  return readConfigVersion(wanted.filters) === 2
}

/**
 * The request body: all fields of a new definition; otherwise the changed fields, and the version that they were compared
 * with.
 */
export function buildWriteBody(write: PlannedWrite, ids: ReferenceIds): JsonObject {
  const { before, wanted, changes } = write
  const changed = new Set(changes.map(({ path }) => path.split('.')[0]!))
  const fields =
    before === null ? wanted : Object.fromEntries(Object.entries(wanted).filter(([name]) => changed.has(name)))
  const filters = getOwnValue(fields, 'filters')
  const isWithoutFilters = filters === undefined || (write.kind === 'cohort' && write.wanted.is_static)
  const { filters: _, ...others } = fields as JsonObject
  const version = before === null ? undefined : before.version
  return {
    ...others,
    ...(!isWithoutFilters && { filters: buildFiltersToSend(write, ids) }),
    ...(version !== undefined && { version }),
  }
}

function buildFiltersToSend({ before, wanted }: PlannedWrite, ids: ReferenceIds): JsonObject {
  const { filters } = wanted
  if (readConfigVersion(filters) !== 2) return ids.resolve(filters)
  return copyExperimentsFrom(filters, before === null ? null : (before.filters as JsonObject))
}
