// What undoing an import stands on: undo records from the state, and what the event store tells of other imports and live
// events. Source: docs/wire/import.md §2.11.

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
import { batchOf, type ImportWorkDeps } from './job-batch.ts'
import { findInHalves } from './look-up.ts'

export type UndoRecordNamed<Kind extends SubjectKind> = Extract<UndoRecord, { readonly kind: Kind }>

export function nameOf({ subject }: UndoRecord): string {
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

/** What the state has of a batch. */
export async function undoBatchOf(
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
    inSlices([...names], some => jobs.findUndoRecords([id, ...laterJobIds], kind, some))
  const mappings = (await findRecords('mapping', idsIn(loaded))) as UndoRecordNamed<'mapping'>[]
  const uuids = new Set([
    ...undoRecords.map(nameOf),
    ...loaded.persons.map(({ uuid }) => uuid),
    ...mappings.flatMap(({ before }) => before?.personUuid ?? []),
    ...uuidsOfMoved(loaded, job.projectId),
  ])
  const ofPersons = await Promise.all(
    (['person', 'id_count', 'assignments'] as const).map(kind => findRecords(kind, uuids)),
  )
  const known = [...mappings, ...(await withoutDiscardedImplicitJobs(ofPersons.flat(), deps))]
  return { ...batchOf(job, deps, loaded, published), ...noEvents, undoRecords: known, laterJobIds }
}

/** A person that is one with another by now was named by the first of its distinct ids. */
function uuidsOfMoved({ mappings, personMappings }: LoadedChunk, projectId: number): string[] {
  return [...mappings, ...personMappings].flatMap(({ distinctId, version }) =>
    version > 0 ? personUuid(projectId, distinctId) : [],
  )
}

type EventsOfJob = 'uses' | 'laterWrites' | 'importedKeys' | 'laterWriters' | 'keysOfSurvivors' | 'writersOfSurvivors'

/** What the event store tells of the ids of a batch. @param undoRecords of a single one, the ids are asked about one by one at last. */
export async function eventsOf(
  job: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  { loaded, laterJobIds, undoRecords: all }: UndoBatch,
  undoRecords: readonly UndoRecord[],
): Promise<Pick<UndoBatch, EventsOfJob>> {
  const { events } = deps
  const { id, projectId } = job
  // Persons that the job merged away come back as they were.
  const returning = all.flatMap(({ kind, before, after }) =>
    kind === 'person' && after === null && before !== null ? before : [],
  )
  const added = undoRecords.flatMap(({ kind, before, after }) =>
    kind === 'person' && after !== null ? keysAdded(before, after) : [],
  )
  // Other keys of these ids may have been written as often as anybody likes.
  const keys = [...new Set([...keysIn([...loaded.persons, ...returning]), ...added])]
  const isLaterJob = new Set(laterJobIds)
  const sinceMs = await publishStart(job, deps)
  const find = asking(deps, signal, idsIn(loaded), undoRecords.length)
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
    uses: uses.map(use => (use.importJobId === 0 ? use : asOfJob(use, isLaterJob.has(use.importJobId)))),
    laterWrites: await find(some => events.findLaterWrites(projectId, some, keys, sinceMs), charsOfWrite),
    importedKeys,
    laterWriters: await writersOf(importedKeys, laterJobIds, deps),
    ...(await keysOfSurvivors(job, deps, signal, loaded, undoRecords, joinedIds)),
  }
}

/**
 * What a person was that is one with another by now, nobody kept: it takes all that any other import wrote to either. So does
 * a person that another was merged into, with the ids of that one.
 * @param joinedIds which live events linked.
 */
async function keysOfSurvivors(
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
  const keys = keysIn(persons.filter(({ uuid }) => survivors.has(uuid)))
  const jobIds = (await listPublishedJobs(job, deps)).filter(id => id !== job.id)
  const found = await asking(
    deps,
    signal,
    ids,
    undoRecords.length,
  )(
    some => deps.events.findImportedKeys({ projectId: job.projectId, jobIds, sinceMs: 0 }, some, keys),
    charsOfImportedKey,
  )
  return { keysOfSurvivors: found, writersOfSurvivors: await writersOf(found, jobIds, deps) }
}

/**
 * Undo records without values of implicit jobs that were undone since: a job has these where it took their place, so that the subject was
 * no longer found by their marks.
 */
export async function withoutDiscardedImplicitJobs(
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

/** Every job of the project that is published, in that order. Implicit jobs are not among them. */
export function listPublishedJobs(
  { projectId }: Pick<ImportJob, 'projectId'>,
  { jobs }: Pick<ImportWorkDeps, 'jobs'>,
): Promise<readonly number[]> {
  return jobs.listLaterImportJobs({ id: 0, projectId, publishedAtMs: 0 })
}

/** What the event store tells of the persons of an implicit job: what every other import wrote, and live events since it began. */
export async function findEventsOfImplicitJob(
  { id, projectId, createdAtMs }: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  { loaded, laterJobIds }: Pick<UndoBatch, 'loaded' | 'laterJobIds'>,
  personCount: number,
): Promise<Pick<UndoBatch, 'laterWrites' | 'importedKeys' | 'laterWriters'>> {
  const { events } = deps
  const find = asking(deps, signal, idsIn(loaded), personCount)
  const keys = keysIn(loaded.persons)
  const imports = { projectId, jobIds: laterJobIds, sinceMs: 0 }
  const all = await find(some => events.findImportedKeys(imports, some, keys), charsOfImportedKey)
  const importedKeys = all.filter(({ importJobId }) => importJobId !== id)
  return {
    laterWrites: await find(some => events.findLaterWrites(projectId, some, keys, createdAtMs), charsOfWrite),
    importedKeys,
    laterWriters: await writersOf(importedKeys, laterJobIds, deps),
  }
}

/** What the event store tells of groups. @param sinceMs what implicit jobs wrote from then on is asked for. */
export async function groupEventsOf(
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
  const groupUses = await asking(
    deps,
    signal,
    groups,
    groupCount,
  )(some => events.findOtherGroupUses(projectId, id, some))
  const imports = { projectId, jobIds: laterJobIds, sinceMs }
  const findKeys = asking(deps, signal, keysIn(loaded.groups), groupCount)
  const all = await findKeys(some => events.findImportedGroupKeys(imports, groups, some))
  const importedGroupKeys = all.filter(({ importJobId }) => importJobId !== id)
  return { groupUses, importedGroupKeys, laterWriters: await writersOf(importedGroupKeys, laterJobIds, deps) }
}

/** Asks about all items at once; about halves of them, too, where they belong to one subject only. */
function asking<Item>(
  { random }: Pick<ImportWorkDeps, 'random'>,
  signal: AbortSignal,
  items: readonly Item[],
  subjectCount: number,
) {
  return <Row>(ask: (some: readonly Item[]) => Promise<readonly Row[]>, charsOf?: (row: Row) => number) =>
    subjectCount > 1 ? ask(items) : findInHalves(items, ask, { random, signal, ...(charsOf && { charsOf }) })
}

function charsOfImportedKey({ distinctId, key, value }: ImportedKey): number {
  return distinctId.length + charsOfWrite({ key, value })
}

function charsOfWrite({ key, value }: Pick<ImportedWrite, 'key' | 'value'>): number {
  return key.length + JSON.stringify(value).length
}

/**
 * How the imports were published that wrote something, those of implicit jobs first: these wrote before their day was over.
 * @param jobIds the others, in the order in which they were published.
 */
export async function writersOf(
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
        const sinceMs = job.day === null ? await publishStart(job, { jobs }) : Date.parse(job.day)
        const isImplicit = job.day !== null
        const startMs = isImplicit ? sinceMs + dayMs : sinceMs
        return { importJobId: job.id, isImplicit, options: job.options, startMs, sinceMs }
      }),
  )
}

/** The keys that these have now, or that an import has taken from them. */
export function keysIn(profiles: readonly Profile[]): string[] {
  return [...new Set(profiles.flatMap(({ properties, marks }) => [...Object.keys(properties), ...Object.keys(marks)]))]
}

function idsIn({ mappings, personMappings }: LoadedChunk): string[] {
  return [...new Set([...mappings, ...personMappings].map(({ distinctId }) => distinctId))]
}

/** Events of a job may be older than its publishing. */
function asOfJob(use: OtherUse, isLater: boolean): OtherUse {
  return { ...use, isLater, writes: isLater && use.writes }
}

export async function publishStart(
  { id, publishedAtMs }: Pick<ImportJob, 'id' | 'publishedAtMs'>,
  { jobs }: Pick<ImportWorkDeps, 'jobs'>,
): Promise<number> {
  const [start] = (await jobs.findUndoRecords([id], 'publish_start', [''])) as UndoRecordNamed<'publish_start'>[]
  // A job without persons, ids and groups has published none.
  return start?.before?.atMs ?? publishedAtMs ?? 0
}

/** SQLite takes some ten thousand parameters in one statement. */
const namesPerQuery = 1_000

export async function inSlices<T>(
  names: readonly string[],
  find: (names: readonly string[]) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = []
  for (let from = 0; from < names.length; from += namesPerQuery)
    for (const each of await find(names.slice(from, from + namesPerQuery))) found.push(each)
  return found
}
