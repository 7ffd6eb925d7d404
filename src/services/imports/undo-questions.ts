// What undoing an import stands on: images from the state, and what the event store tells of other imports and live
// events. Source: docs/wire/import.md §2.11.

import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { SubjectImage, SubjectKind } from '#core/imports/import-changes.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import type { ImportedWrite, OtherUse } from '#core/imports/other-use.ts'
import type { Profile } from '#core/persons/profile.ts'
import type { LoadedChunk } from '#core/processing/chunk.ts'
import type { LaterWriter } from '#core/processing/imports/outranked.ts'
import type { UndoBatch } from '#core/processing/imports/undo-batch.ts'
import { batchOf, type ImportWorkDeps } from './job-batch.ts'
import { findInHalves } from './look-up.ts'

export type ImageNamed<Kind extends SubjectKind> = Extract<SubjectImage, { readonly kind: Kind }>

export function nameOf({ subject }: SubjectImage): string {
  return subject
}

export const noEvents = {
  uses: [],
  laterWrites: [],
  importedKeys: [],
  laterWriters: [],
  groupUses: [],
  importedGroupKeys: [],
} as const

/** What the state has of a batch. */
export async function undoBatchOf(
  job: ImportJob,
  deps: ImportWorkDeps,
  loaded: LoadedChunk,
  told: readonly PersonIdOverride[],
  images: readonly SubjectImage[],
): Promise<UndoBatch> {
  const { jobs } = deps
  const { id } = job
  const laterJobIds = await jobs.listLaterImportJobs(job)
  const imagesOf = (kind: SubjectKind, names: Iterable<string>) =>
    inSlices([...names], some => jobs.findImportImages([id, ...laterJobIds], kind, some))
  const mappings = (await imagesOf('mapping', idsIn(loaded))) as ImageNamed<'mapping'>[]
  const uuids = new Set([
    ...images.map(nameOf),
    ...loaded.persons.map(({ uuid }) => uuid),
    ...mappings.flatMap(({ before }) => before?.personUuid ?? []),
  ])
  const ofPersons = await Promise.all(
    (['person', 'id_count', 'assignments'] as const).map(kind => imagesOf(kind, uuids)),
  )
  const known = [...mappings, ...ofPersons.flat()]
  return { ...batchOf(job, deps, loaded, told), ...noEvents, images: known, laterJobIds }
}

/** What the event store tells of the ids of a batch. @param imageCount of a single one, the ids are asked about one by one at last. */
export async function eventsOf(
  job: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  { loaded, laterJobIds }: UndoBatch,
  imageCount: number,
): Promise<Pick<UndoBatch, 'uses' | 'laterWrites' | 'importedKeys' | 'laterWriters'>> {
  const { events, random } = deps
  const { id, projectId } = job
  const ids = idsIn(loaded)
  // Other keys of these ids may have been written as often as anybody likes.
  const keys = keysIn(loaded.persons)
  const isLaterJob = new Set(laterJobIds)
  const sinceMs = await publishStart(job, deps)
  const find = <Row>(ask: (some: readonly string[]) => Promise<readonly Row[]>, charsOf: (row: Row) => number) =>
    imageCount > 1 ? ask(ids) : findInHalves(ids, ask, { random, signal, charsOf })
  const importedKeys = await find(
    some => events.findImportedKeys({ projectId, jobIds: laterJobIds, sinceMs }, some, keys),
    ({ distinctId, key, value }) => distinctId.length + key.length + JSON.stringify(value).length,
  )
  const uses = await find(
    some => events.findOtherUses(projectId, id, some, sinceMs),
    ({ distinctId, otherId }) => distinctId.length + (otherId?.length ?? 0),
  )
  return {
    uses: uses.map(use => (use.importJobId === 0 ? use : asOfJob(use, isLaterJob.has(use.importJobId)))),
    laterWrites: await find(
      some => events.findLaterWrites(projectId, some, keys, sinceMs),
      ({ key, value }) => key.length + JSON.stringify(value).length,
    ),
    importedKeys,
    laterWriters: await writersOf(importedKeys, laterJobIds, deps),
  }
}

/** How the jobs were published that wrote something. */
export async function writersOf(
  writes: readonly ImportedWrite[],
  laterJobIds: readonly number[],
  { jobs }: ImportWorkDeps,
): Promise<LaterWriter[]> {
  const wrote = new Set(writes.map(({ importJobId }) => importJobId))
  const found = await Promise.all(laterJobIds.filter(id => wrote.has(id)).map(id => jobs.findImportJob(id)))
  return Promise.all(
    found
      .filter(job => job !== null)
      .map(async job => ({ importJobId: job.id, options: job.options, startMs: await publishStart(job, { jobs }) })),
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
  const [start] = (await jobs.findImportImages([id], 'publish_start', [''])) as ImageNamed<'publish_start'>[]
  // A job of before this was kept.
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
