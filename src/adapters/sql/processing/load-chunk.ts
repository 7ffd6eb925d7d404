// Loads the state that a chunk's events may touch, within one transaction so that it is consistent. It chooses the rows
// and bounds the texts that a load may hold; each engine implements the reads.

import type { Selectable } from 'kysely'
import type { Group, GroupType } from '#core/groups/group.ts'
import { type ImportJobStatus, type ImportOptions, toStagingProjectId } from '#core/imports/import-job.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { ErasedId } from '#core/persons/erasure.ts'
import { projectResource } from '#core/project.ts'
import type { ChunkSubjects, LoadedChunk } from '#ports/state/chunk-store.ts'
import { toResourceItem } from '../tables/resource-rows.ts'
import { parseLogEnds, parseStoredJsonObject, toGroupType } from '../tables/rows.ts'
import type { GroupTypeTable, PersonErasureTable, ProjectTable, StateSchema } from '../tables/schema.ts'
import {
  addTextsOfLargePersons,
  chargeMappingsToBudget,
  countMappingsThatFit,
  type GroupKey,
  groupIdsByProject,
  type LoadedGroupRow,
  listWantedGroups,
  longestTextBytes,
  type MappedPersonRow,
  type PersonMappingRow,
  type PersonTextRow,
  selectPersonIds,
  TextBudget,
  toLoadedGroups,
  toMappedPersons,
  toPersonMappings,
} from './chunk-rows.ts'

type Ids = ReadonlyMap<number, ReadonlySet<string>>

/** What one load reads from the database. Each list that is passed may be empty. */
export interface ChunkReads {
  projects(ids: readonly number[]): MaybePromise<readonly LoadedProjectRow[]>
  /** The projects' group types, ordered by project and index. */
  groupTypes(projectIds: readonly number[]): MaybePromise<readonly Selectable<GroupTypeTable>[]>
  /** @param ids distinct ids by project. @param textBytes the longest text that is read; longer texts are null. */
  mappedPersons(ids: Ids, textBytes: number): MaybePromise<readonly MappedPersonRow[]>
  personTexts(personIds: readonly number[]): MaybePromise<readonly PersonTextRow[]>
  /** @param countMax beyond this many rows the read may stop. */
  personMappings(personIds: readonly number[], countMax: number): MaybePromise<readonly PersonMappingRow[]>
  personless(ids: Ids): MaybePromise<readonly Selectable<StateSchema['personless_distinct_id']>[]>
  erasedIds(ids: Ids): MaybePromise<readonly ErasedIdRow[]>
  importJobs(ids: readonly number[]): MaybePromise<readonly ImportJobRow[]>
  generated(
    events: readonly { readonly projectId: number; readonly uuid: string }[],
  ): MaybePromise<readonly StateSchema['import_generated'][]>
  /** @param textBytes the longest text that is read; a longer text is null. */
  groups(keys: readonly GroupKey[], textBytes: number): MaybePromise<readonly LoadedGroupRow[]>
}

/** `is_undone` and `has_erased_ids` are 0 or 1. */
export type LoadedProjectRow = Selectable<ProjectTable> & {
  readonly is_undone: number
  readonly has_erased_ids: number
}

export type ErasedIdRow = StateSchema['erased_distinct_id'] &
  Pick<Selectable<PersonErasureTable>, 'deletes_events' | 'deletes_recordings' | 'log_id' | 'log_ends'>

/** `has_notes` is 0 or 1. */
export type ImportJobRow = Pick<StateSchema['import_job'], 'id' | 'project_id' | 'state' | 'step' | 'options'> & {
  readonly has_notes: number
}

/** A generator that yields each database read; `loadSynchronously` and `loadAsynchronously` run it to its end. */
export type ChunkLoad = Generator<MaybePromise<unknown>, LoadedChunk | 'too_large', unknown>

export function* loadChunk(reads: ChunkReads, subjects: ChunkSubjects, textBytesMax: number): ChunkLoad {
  const budget = new TextBudget(textBytesMax)
  const projectIds = [...new Set(subjects.projectIds)]
  const projects = yield* awaitRows(reads.projects(projectIds))
  const types = (yield* awaitRows(reads.groupTypes(projectIds))).map(toGroupType)

  const ids = groupIdsByProject(subjects.distinctIds)
  const idCount = ids.values().reduce((sum, ofProject) => sum + ofProject.size, 0)
  const rows = yield* awaitRows(reads.mappedPersons(ids, budget.textBytesOfEach(idCount)))
  const mapped = toMappedPersons(rows, budget)
  if (budget.isExceeded) return 'too_large'
  addTextsOfLargePersons(mapped, yield* awaitRows(reads.personTexts([...mapped.large.keys()])))

  const personIds = selectPersonIds(mapped, subjects.mergingDistinctIds)
  const mappings = yield* awaitRows(reads.personMappings(personIds, countMappingsThatFit(budget)))
  chargeMappingsToBudget(budget, mappings, mapped)
  if (budget.isExceeded) return 'too_large'
  const personless = yield* awaitRows(reads.personless(ids))

  const erasable = groupIdsByProject(
    [...subjects.distinctIds, ...(subjects.otherDistinctIds ?? [])].filter(createErasedIdFilter(projects)),
  )
  const erasedIds = erasable.size === 0 ? [] : (yield* awaitRows(reads.erasedIds(erasable))).map(toErasedId)

  const { importJobIds = [], generated = [] } = subjects
  const importJobs =
    importJobIds.length === 0 ? [] : (yield* awaitRows(reads.importJobs(importJobIds))).map(toJobStatus)
  const seenBefore = generated.length === 0 ? [] : yield* awaitRows(reads.generated(generated))

  const keys = (subjects.groupKeys ?? []).map(({ projectId, typeIndex, key }) => ({
    ...{ project_id: projectId, group_type_index: typeIndex, group_key: key },
  }))
  const named = listWantedGroups(subjects.groups, addStagingTypes(types, importJobs))
  const groups = yield* loadGroups(reads, [...named, ...keys], budget)
  if (budget.isExceeded) return 'too_large'
  return {
    projects: projects.map(row => toResourceItem(projectResource, row)),
    ...toImportUndos(projects),
    ...toErasureCounts(projects),
    ...(erasedIds.length > 0 && { erasedIds }),
    mappings: mapped.mappings,
    persons: [...mapped.persons.values()],
    personPropertiesJson: mapped.personPropertiesJson,
    personMappings: toPersonMappings(mappings, mapped),
    personlessDistinctIds: personless.map(row => ({
      projectId: Number(row.project_id),
      distinctId: row.distinct_id,
      nextVersion: Number(row.next_version),
    })),
    ...(importJobs.length > 0 && { importJobs }),
    ...(seenBefore.length > 0 && {
      generated: seenBefore.map(row => ({
        projectId: Number(row.project_id),
        uuid: row.uuid,
        timestampMs: Number(row.timestamp),
        importJobId: Number(row.import_job_id),
      })),
    }),
    groupTypes: types,
    textBytes: budget.takenBytes,
    textBytesOf: budget.bytesOf,
    groups,
  }
}

/** Adds a project's group types to the staging overlays of the project's jobs. */
function addStagingTypes(types: readonly GroupType[], jobs: readonly ImportJobStatus[]): readonly GroupType[] {
  if (jobs.length === 0) return types
  const stagingTypes = jobs.flatMap(({ id, projectId }) =>
    types.filter(type => type.projectId === projectId).map(type => ({ ...type, projectId: toStagingProjectId(id) })),
  )
  return [...types, ...stagingTypes]
}

function toJobStatus(row: ImportJobRow): ImportJobStatus {
  return {
    id: Number(row.id),
    projectId: Number(row.project_id),
    state: row.state,
    step: row.step,
    hasNotes: Number(row.has_notes) === 1,
    looksUpGeoip: (parseStoredJsonObject(row.options) as Partial<ImportOptions>).looksUpGeoip === true,
  }
}

/** Loads the wanted groups; if they exceed the budget, only some of them, since the caller then refuses the chunk. */
function* loadGroups(
  reads: ChunkReads,
  wanted: readonly GroupKey[],
  budget: TextBudget,
): Generator<MaybePromise<unknown>, Group[], unknown> {
  const { groups, large } = toLoadedGroups(
    yield* awaitRows(reads.groups(wanted, budget.textBytesOfEach(wanted.length))),
    budget,
  )
  if (budget.isExceeded || large.length === 0) return groups
  const whole = yield* awaitRows(reads.groups(large, longestTextBytes))
  return groups.concat(toLoadedGroups(whole, new TextBudget(Number.POSITIVE_INFINITY)).groups)
}

function* awaitRows<T>(rows: MaybePromise<T>): Generator<MaybePromise<unknown>, T, unknown> {
  return (yield rows) as T
}

/** Runs a load to its end on an engine whose reads are synchronous. */
export function loadSynchronously(load: ChunkLoad): LoadedChunk | 'too_large' {
  let step = load.next()
  while (step.done !== true) step = load.next(step.value)
  return step.value
}

export async function loadAsynchronously(load: ChunkLoad): Promise<LoadedChunk | 'too_large'> {
  let step = load.next()
  while (step.done !== true) step = load.next(await step.value)
  return step.value
}

function toImportUndos(projects: readonly LoadedProjectRow[]): Pick<LoadedChunk, 'importUndos'> {
  const undone = projects.filter(row => Number(row.import_undos) > 0)
  if (undone.length === 0) return {}
  return {
    importUndos: new Map(
      undone.map(row => [Number(row.id), { count: Number(row.import_undos), isRunning: row.is_undone === 1 }]),
    ),
  }
}

function toErasureCounts(projects: readonly LoadedProjectRow[]): Pick<LoadedChunk, 'erasures'> {
  const erased = projects.filter(row => Number(row.erasures) > 0)
  return erased.length === 0 ? {} : { erasures: new Map(erased.map(row => [Number(row.id), Number(row.erasures)])) }
}

/** Matches only ids of projects that have erased ids: these are few, so most ids need no look-up. */
function createErasedIdFilter(projects: readonly LoadedProjectRow[]): (id: { readonly projectId: number }) => boolean {
  const having = new Set(projects.filter(row => row.has_erased_ids === 1).map(row => Number(row.id)))
  return ({ projectId }) => having.has(projectId)
}

function toErasedId(row: ErasedIdRow): ErasedId {
  return {
    projectId: Number(row.project_id),
    distinctId: row.distinct_id,
    deletesEvents: row.deletes_events === 1,
    deletesRecordings: row.deletes_recordings === 1,
    ...parseLogEnds(row),
  }
}
