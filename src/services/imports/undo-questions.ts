// Loads the inputs of an undo: undo records from the state store, and uses by other imports and live events from the event
// store. Source: docs/wire/import.md §2.11.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { SubjectKind, UndoRecord } from '#core/imports/import-changes.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import type { ImportedKey, ImportedWrite, OtherUse } from '#core/imports/other-use.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import type { Profile } from '#core/persons/profile.ts'
import type { LoadedChunk } from '#core/processing/chunk.ts'
import { idsOfLiveLinks } from '#core/processing/imports/linked-ids.ts'
import { keysAdded } from '#core/processing/imports/revert.ts'
import type { LaterWriter } from '#core/processing/imports/shadowed.ts'
import type { UndoBatch } from '#core/processing/imports/undo-batch.ts'
import { undoRecordWithout } from '#core/processing/imports/undo-implicit-job.ts'
import { dayMs } from '#core/time.ts'
import { findInHalves } from './find-in-halves.ts'
import { createJobBatch, type ImportWorkDeps } from './job-batch.ts'

export type UndoRecordNamed<Kind extends SubjectKind> = Extract<UndoRecord, { readonly kind: Kind }>

export function readSubjectName({ subject }: UndoRecord): string {
  return subject
}

export const noEvents = {
  uses: [],
  laterWrites: [],
  importedKeys: [],
  laterWriters: [],
  keysOfSurvivors: [],
  writersOfSurvivors: [],
  groupUses: [],
  importedGroupKeys: [],
} as const

/** Loads the part of a batch's inputs that is in the state store. */
export async function loadUndoBatch(
  job: ImportJob,
  deps: ImportWorkDeps,
  loaded: LoadedChunk,
  published: readonly PersonIdOverride[],
  undoRecords: readonly UndoRecord[],
): Promise<UndoBatch> {
  const { jobs } = deps
  const { id } = job
  const laterJobIds = await jobs.listLaterImportJobs(job)
  const findRecords = (kind: SubjectKind, names: Iterable<string>) =>
    findInSlices([...names], some => jobs.findUndoRecords([id, ...laterJobIds], kind, some))
  const mappings = (await findRecords('mapping', collectDistinctIds(loaded))) as UndoRecordNamed<'mapping'>[]
  const uuids = new Set([
    ...undoRecords.map(readSubjectName),
    ...loaded.persons.map(({ uuid }) => uuid),
    ...mappings.flatMap(({ before }) => before?.personUuid ?? []),
    ...listFormerUuids(loaded, job.projectId),
  ])
  const ofPersons = await Promise.all(
    (['person', 'id_count', 'assignments'] as const).map(kind => findRecords(kind, uuids)),
  )
  const known = [...mappings, ...(await removeDiscardedImplicitJobs(ofPersons.flat(), deps))]
  return { ...createJobBatch(job, deps, loaded, published), ...noEvents, undoRecords: known, laterJobIds }
}

/** A person that has been merged since had a uuid derived from its first distinct id. */
function listFormerUuids({ mappings, personMappings }: LoadedChunk, projectId: number): string[] {
  return [...mappings, ...personMappings].flatMap(({ distinctId, version }) =>
    version > 0 ? personUuid(projectId, distinctId) : [],
  )
}

type EventsOfJob = 'uses' | 'laterWrites' | 'importedKeys' | 'laterWriters' | 'keysOfSurvivors' | 'writersOfSurvivors'

/** Queries the event store about the ids of a batch. @param undoRecords if there is only one, its ids are queried in halves. */
export async function findEventInputs(
  job: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  { loaded, laterJobIds, undoRecords: all }: UndoBatch,
  undoRecords: readonly UndoRecord[],
): Promise<Pick<UndoBatch, EventsOfJob>> {
  const { events } = deps
  const { id, projectId } = job
  // Persons that the job merged away are restored.
  const returning = all.flatMap(({ kind, before, after }) =>
    kind === 'person' && after === null && before !== null ? before : [],
  )
  const added = undoRecords.flatMap(({ kind, before, after }) =>
    kind === 'person' && after !== null ? keysAdded(before, after) : [],
  )
  // The query is limited to these keys, because other keys may have been written any number of times.
  const keys = [...new Set([...collectPropertyKeys([...loaded.persons, ...returning]), ...added])]
  const isLaterJob = new Set(laterJobIds)
  const sinceMs = await findPublishStartMs(job, deps)
  const find = createFinder(deps, signal, collectDistinctIds(loaded), undoRecords.length)
  const importedKeys = await find(
    some => events.findImportedKeys({ projectId, jobIds: laterJobIds, sinceMs }, some, keys),
    charsOfImportedKey,
  )
  const uses = await find(
    some => events.findOtherUses(projectId, id, some, sinceMs),
    ({ distinctId, otherId }) => distinctId.length + (otherId?.length ?? 0),
  )
  const joinedIds = idsOfLiveLinks(uses)
  return {
    uses: uses.map(use => (use.importJobId === 0 ? use : applyJobOrder(use, isLaterJob.has(use.importJobId)))),
    laterWrites: await find(some => events.findLaterWrites(projectId, some, keys, sinceMs), countWriteChars),
    importedKeys,
    laterWriters: await findWriters(importedKeys, laterJobIds, deps),
    ...(await findSurvivorKeys(job, deps, signal, loaded, undoRecords, joinedIds)),
  }
}

/**
 * The former properties of a person that has been merged since are not stored: they are derived from everything that other
 * imports wrote to either person, and likewise for the person that it was merged into.
 * @param joinedIds distinct ids linked by live events.
 */
async function findSurvivorKeys(
  job: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  { persons, mappings, personMappings }: LoadedChunk,
  undoRecords: readonly UndoRecord[],
  joinedIds: ReadonlySet<string>,
): Promise<Pick<UndoBatch, 'keysOfSurvivors' | 'writersOfSurvivors'>> {
  const uuids = new Set(persons.map(({ uuid }) => uuid))
  const homeOf = new Map(mappings.map(({ distinctId, personUuid }) => [distinctId, personUuid]))
  const survivors = new Set(
    undoRecords.flatMap(({ kind, subject, after }) =>
      kind === 'person' && after !== null && !uuids.has(subject) ? (homeOf.get(after.anyId) ?? []) : [],
    ),
  )
  for (const { personUuid, distinctId, version } of [...mappings, ...personMappings])
    if (version > 0 && joinedIds.has(distinctId)) survivors.add(personUuid)
  if (survivors.size === 0) return { keysOfSurvivors: [], writersOfSurvivors: [] }
  const all = [...mappings, ...personMappings].filter(({ personUuid }) => survivors.has(personUuid))
  const ids = [...new Set(all.map(({ distinctId }) => distinctId))]
  const keys = collectPropertyKeys(persons.filter(({ uuid }) => survivors.has(uuid)))
  const jobIds = (await listPublishedJobs(job, deps)).filter(id => id !== job.id)
  const found = await createFinder(
    deps,
    signal,
    ids,
    undoRecords.length,
  )(
    some => deps.events.findImportedKeys({ projectId: job.projectId, jobIds, sinceMs: 0 }, some, keys),
    charsOfImportedKey,
  )
  return { keysOfSurvivors: found, writersOfSurvivors: await findWriters(found, jobIds, deps) }
}

/**
 * Removes from undo records the values of implicit jobs that were undone since: where a job had overwritten those values,
 * the undo did not find the subject by the implicit job's marks.
 */
export async function removeDiscardedImplicitJobs(
  undoRecords: readonly UndoRecord[],
  { jobs }: Pick<ImportWorkDeps, 'jobs'>,
): Promise<readonly UndoRecord[]> {
  const profiles = undoRecords.flatMap(({ kind, before, after }) =>
    kind === 'person' || kind === 'group' ? [before, after].filter(side => side !== null) : [],
  )
  const ids = new Set(profiles.flatMap(({ marks }) => Object.values(marks).map(({ importJobId }) => importJobId)))
  const found = await Promise.all([...ids].map(id => jobs.findImportJob(id)))
  const days = found.filter(job => job?.day != null && job.state === 'discarded').map(job => job!.id)
  return days.length === 0 ? undoRecords : undoRecords.map(undoRecord => days.reduce(undoRecordWithout, undoRecord))
}

/** Every published job of the project, in the order of publishing, without implicit jobs. */
export function listPublishedJobs(
  { projectId }: Pick<ImportJob, 'projectId'>,
  { jobs }: Pick<ImportWorkDeps, 'jobs'>,
): Promise<readonly number[]> {
  return jobs.listLaterImportJobs({ id: 0, projectId, publishedAtMs: 0 })
}

/**
 * Finds, for the persons of an implicit job, what every other import wrote, and what live events wrote since the job
 * began.
 */
export async function findEventsOfImplicitJob(
  { id, projectId, createdAtMs }: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  { loaded, laterJobIds }: Pick<UndoBatch, 'loaded' | 'laterJobIds'>,
  personCount: number,
): Promise<Pick<UndoBatch, 'laterWrites' | 'importedKeys' | 'laterWriters'>> {
  const { events } = deps
  const find = createFinder(deps, signal, collectDistinctIds(loaded), personCount)
  const keys = collectPropertyKeys(loaded.persons)
  const imports = { projectId, jobIds: laterJobIds, sinceMs: 0 }
  const all = await find(some => events.findImportedKeys(imports, some, keys), charsOfImportedKey)
  const importedKeys = all.filter(({ importJobId }) => importJobId !== id)
  return {
    laterWrites: await find(some => events.findLaterWrites(projectId, some, keys, createdAtMs), countWriteChars),
    importedKeys,
    laterWriters: await findWriters(importedKeys, laterJobIds, deps),
  }
}

/** Queries the event store about groups. @param sinceMs writes of implicit jobs before this are ignored. */
export async function findGroupEventInputs(
  { id, projectId }: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  {
    loaded,
    laterJobIds,
    sinceMs,
  }: Pick<UndoBatch, 'loaded' | 'laterJobIds'> & {
    readonly sinceMs: number
  },
  groupCount: number,
): Promise<Pick<UndoBatch, 'groupUses' | 'importedGroupKeys' | 'laterWriters'>> {
  const { events } = deps
  const nameOfType = new Map(loaded.groupTypes.map(({ index, name }) => [index, name]))
  const groups = loaded.groups.map(({ typeIndex, key }) => ({ typeName: nameOfType.get(typeIndex) ?? '', key }))
  const groupUses = await createFinder(
    deps,
    signal,
    groups,
    groupCount,
  )(some => events.findOtherGroupUses(projectId, id, some))
  const imports = { projectId, jobIds: laterJobIds, sinceMs }
  const findKeys = createFinder(deps, signal, collectPropertyKeys(loaded.groups), groupCount)
  const all = await findKeys(some => events.findImportedGroupKeys(imports, groups, some))
  const importedGroupKeys = all.filter(({ importJobId }) => importJobId !== id)
  return { groupUses, importedGroupKeys, laterWriters: await findWriters(importedGroupKeys, laterJobIds, deps) }
}

/** Queries all items at once; if they belong to one subject, also their halves on failure. */
function createFinder<Item>(
  { random }: Pick<ImportWorkDeps, 'random'>,
  signal: AbortSignal,
  items: readonly Item[],
  subjectCount: number,
) {
  return <Row>(ask: (some: readonly Item[]) => Promise<readonly Row[]>, charsOf?: (row: Row) => number) =>
    subjectCount > 1 ? ask(items) : findInHalves(items, ask, { random, signal, ...(charsOf && { charsOf }) })
}

function charsOfImportedKey({ distinctId, key, value }: ImportedKey): number {
  return distinctId.length + countWriteChars({ key, value })
}

function countWriteChars({ key, value }: Pick<ImportedWrite, 'key' | 'value'>): number {
  return key.length + JSON.stringify(value).length
}

/**
 * Finds how and when the imports that wrote these values were published: implicit jobs first, since they wrote before
 * their day ended.
 * @param jobIds the jobs that are not implicit, in the order of publishing.
 */
export async function findWriters(
  writes: readonly ImportedWrite[],
  jobIds: readonly number[],
  { jobs }: ImportWorkDeps,
): Promise<LaterWriter[]> {
  const wrote = new Set(writes.map(({ importJobId }) => importJobId))
  const ofJobs = jobIds.filter(id => wrote.has(id))
  const implicitJobIds = [...wrote].filter(id => !jobIds.includes(id))
  const found = await Promise.all([...implicitJobIds, ...ofJobs].map(id => jobs.findImportJob(id)))
  return Promise.all(
    found
      .filter(job => job !== null)
      .map(async job => {
        const sinceMs = job.day === null ? await findPublishStartMs(job, { jobs }) : Date.parse(job.day)
        const isImplicit = job.day !== null
        const startMs = isImplicit ? sinceMs + dayMs : sinceMs
        return { importJobId: job.id, isImplicit, options: job.options, startMs, sinceMs }
      }),
  )
}

/** The keys that the profiles have, or that an import has removed from them. */
export function collectPropertyKeys(profiles: readonly Profile[]): string[] {
  return [...new Set(profiles.flatMap(({ properties, marks }) => [...Object.keys(properties), ...Object.keys(marks)]))]
}

function collectDistinctIds({ mappings, personMappings }: LoadedChunk): string[] {
  return [...new Set([...mappings, ...personMappings].map(({ distinctId }) => distinctId))]
}

/** The store compares the times of events, but a job's events take effect when the job is published. */
function applyJobOrder(use: OtherUse, isLater: boolean): OtherUse {
  return { ...use, isLater, writes: isLater && use.writes }
}

export async function findPublishStartMs(
  { id, publishedAtMs }: Pick<ImportJob, 'id' | 'publishedAtMs'>,
  { jobs }: Pick<ImportWorkDeps, 'jobs'>,
): Promise<number> {
  const [start] = (await jobs.findUndoRecords([id], 'publish_start', [''])) as UndoRecordNamed<'publish_start'>[]
  // A job without persons, ids and groups stored no such record.
  return start?.before?.atMs ?? publishedAtMs ?? 0
}

/** SQLite accepts some ten thousand parameters per statement. */
const namesPerQuery = 1_000

export async function findInSlices<T>(
  names: readonly string[],
  find: (names: readonly string[]) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = []
  for (let from = 0; from < names.length; from += namesPerQuery)
    for (const each of await find(names.slice(from, from + namesPerQuery))) found.push(each)
  return found
}
