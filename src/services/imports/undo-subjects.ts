// Undoes what a published job did to persons and groups, in batches: reads their events, folds them with and without the
// job's, and commits the difference.

import type { GroupIdentity } from '#core/events/group-identity.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { UndoRefusal } from '#core/imports/import-changes.ts'
import { type ImportJob, usualOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { type ChunkSubjects, noChunkChanges } from '#core/processing/chunk.ts'
import { applyDifference } from '#core/processing/history/apply-difference.ts'
import { foldWithAndWithout, type History } from '#core/processing/history/fold-history.ts'
import { type HistoricEvent, orderHistory, type PublishedJob } from '#core/processing/history/historic-event.ts'
import { type JobBatch, type Note, ProjectGoneError } from '#core/processing/imports/publish-staging.ts'
import { foundRowsMax, type HistorySubjects } from '#ports/events/event-history.ts'
import { findProgress, isProcessed, type Progress } from '../progress/find-progress.ts'
import { type Components, findComponents } from './find-components.ts'
import { createJobBatch, type ImportWorkDeps, runBatch } from './job-batch.ts'

/** Distinct ids whose links are looked up at once. */
const pageSize = 10_000
/**
 * Distinct ids, or groups, per transaction: the live stream waits while it commits. Smaller ones cost more, since the event store
 * looks through the project's events for each.
 */
const batchSizeMax = 2_000
/** A batch is to have about this many events, so that the event store hardly ever refuses to list them at once. */
const batchEvents = foundRowsMax * 0.7
const triesMax = 8

const notReadable: UndoRefusal = 'undo_left:events_not_readable'

/** Items are distinct ids, or groups; those of one unit are undone together. */
interface Kind<Item> {
  readonly of: History['of']
  list(after: Item | null): Promise<readonly Item[]>
  findUnits(items: readonly Item[]): Promise<Components<Item>>
  /** Those of these items that an event links with others: it came after `findUnits`. */
  findOpen(items: readonly Item[]): Promise<readonly Item[]>
  subjectsOf(items: readonly Item[]): Pick<ChunkSubjects, 'distinctIds' | 'mergingDistinctIds' | 'groups'>
  historyOf(items: readonly Item[]): HistorySubjects
  /** For a note. */
  describe(unit: readonly Item[]): JsonObject
}

const shownIdsMax = 20

/** @returns notes about what was left. @throws PortError, NotOwnerError */
export function undoPersons(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<readonly Note[]> {
  const { id, projectId } = job
  return undoAll<string>(job, deps, signal, {
    of: 'persons',
    list: after => deps.events.listJobIds(projectId, id, after, pageSize),
    findUnits: ids => findComponents(projectId, ids, deps, signal),
    findOpen: async ids => {
      const asked = new Set(ids)
      const links = await deps.events.findLinks(projectId, ids)
      return links
        .filter(({ distinctId, linkedId }) => !asked.has(distinctId) || !asked.has(linkedId))
        .flatMap(({ distinctId, linkedId }) => [distinctId, linkedId])
    },
    subjectsOf: ids => {
      const distinctIds = ids.map(distinctId => ({ projectId, distinctId }))
      return { distinctIds, mergingDistinctIds: distinctIds, groups: [] }
    },
    historyOf: distinctIds => ({ distinctIds }),
    describe: ids => ({ distinctIds: ids.slice(0, shownIdsMax) }),
  })
}

/** As for persons. */
export function undoGroups(job: ImportJob, deps: ImportWorkDeps, signal: AbortSignal): Promise<readonly Note[]> {
  const { id, projectId } = job
  return undoAll<GroupIdentity>(job, deps, signal, {
    of: 'groups',
    list: after => deps.events.listJobGroups(projectId, id, after, pageSize),
    findUnits: async groups => ({ found: groups.map(group => [group]), unreadable: [] }),
    findOpen: async () => [],
    subjectsOf: groups => ({
      distinctIds: [],
      mergingDistinctIds: [],
      groups: groups.map(group => ({ projectId, ...group })),
    }),
    historyOf: groups => ({ groups }),
    describe: ([group]) => ({ groupType: group!.typeName, groupKey: group!.key }),
  })
}

async function undoAll<Item>(
  job: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  kind: Kind<Item>,
): Promise<readonly Note[]> {
  const notes: Note[] = []
  let eventsPerItem = 1
  for (let after: Item | null = null; !signal.aborted; ) {
    let items = await kind.list(after)
    if (items.length === 0) break
    after = items.at(-1)!
    for (let tries = 1; items.length > 0 && !signal.aborted; tries++) {
      const { found, unreadable } = await kind.findUnits(items)
      for (const unit of unreadable) notes.push({ reason: notReadable, details: kind.describe(unit) })
      const again: Item[] = []
      for (const units of inBatches(found, () => Math.min(batchSizeMax, batchEvents / eventsPerItem))) {
        const undone = await undoUnits(job, deps, signal, kind, units)
        eventsPerItem = Math.max(undone.eventCount / units.flat().length, eventsPerItem / 2)
        notes.push(...undone.notes)
        for (const unit of undone.open)
          if (tries < triesMax) again.push(...unit)
          else notes.push({ reason: notReadable, details: kind.describe(unit) })
      }
      items = again
    }
  }
  return notes
}

interface Undone<Item> {
  readonly notes: readonly Note[]
  readonly eventCount: number
  /** Units that have been linked with others since they were found: they are unchanged. */
  readonly open: readonly (readonly Item[])[]
}

async function undoUnits<Item>(
  job: ImportJob,
  deps: ImportWorkDeps,
  signal: AbortSignal,
  kind: Kind<Item>,
  units: readonly (readonly Item[])[],
): Promise<Undone<Item>> {
  const { id, projectId } = job
  /** By the first unit of each part: a part that conflicts, or is halved, is computed again. */
  const parts = new Map<readonly Item[], Undone<Item>>()
  await runBatch(
    deps,
    signal,
    units,
    some => ({ ...kind.subjectsOf(some.flat()), projectIds: [projectId] }),
    async (some, loaded, published) => {
      // Both after the load: what is committed in between makes this commit a conflict.
      const openItems = new Set<unknown>(await kind.findOpen(some.flat()))
      const progress = await readProgress(deps)
      const open = some.filter(unit => unit.some(item => openItems.has(item)))
      const stored = await deps.events.readHistory(projectId, kind.historyOf(some.flat()))
      // The others change nothing yet, and will be processed with what this commit makes.
      const events = stored.filter(event => isOfProcessed(event, projectId, progress))
      const batch = createJobBatch(job, loaded, published)
      const history = await toHistory(batch, deps, kind.of, events)
      const { with: was, without: wanted } = foldWithAndWithout(history, id)
      const restored = wanted.persons.map(({ uuid }) => uuid)
      const assignments = await deps.jobs.findAssignments(id, restored)
      const idsWithEvents = new Set(events.map(({ distinctId }) => distinctId))
      const openIds = new Set<unknown>(open.flat())
      const { notes, ...changes } = applyDifference({ ...batch, was, wanted, idsWithEvents, openIds, assignments })
      parts.set(some[0]!, { notes, open, eventCount: events.length })
      return changes
    },
    ([unit]) => {
      const note = { reason: notReadable, details: kind.describe(unit!) }
      parts.set(unit!, { notes: [note], open: [], eventCount: foundRowsMax })
      return { overrides: [], changes: noChunkChanges }
    },
  )
  const all = [...parts.values()]
  return {
    notes: all.flatMap(({ notes }) => notes),
    open: all.flatMap(({ open }) => open),
    eventCount: all.reduce((sum, { eventCount }) => sum + eventCount, 0),
  }
}

/** A unit that is larger than a batch is one. @param sizeMax how many items the next batch may have. */
function* inBatches<Item>(
  units: readonly (readonly Item[])[],
  sizeMax: () => number,
): Generator<readonly (readonly Item[])[]> {
  let batch: (readonly Item[])[] = []
  let size = 0
  for (const unit of units) {
    if (size + unit.length > sizeMax() && batch.length > 0) {
      yield batch
      batch = []
      size = 0
    }
    batch.push(unit)
    size += unit.length
  }
  if (batch.length > 0) yield batch
}

async function toHistory(
  { projectId, loaded }: JobBatch,
  { jobs }: ImportWorkDeps,
  of: History['of'],
  events: readonly HistoricEvent[],
): Promise<History> {
  const project = loaded.projects.find(each => each.id === projectId)
  if (project === undefined) throw new ProjectGoneError(`project ${projectId} is gone`)
  const published = new Map<number, PublishedJob>()
  for (const id of new Set(events.filter(({ isOfJob }) => isOfJob).map(({ importJobId }) => importJobId))) {
    const job = await jobs.findImportJob(id)
    const { options = usualOptions, publishBeganAtMs = null } = job ?? {}
    if (publishBeganAtMs !== null) published.set(id, { id, options, publishBeganAtMs })
  }
  const groupTypes = loaded.groupTypes.filter(type => type.projectId === projectId)
  return { project, groupTypes, of, items: orderHistory(events, published) }
}

async function readProgress({ jobs, log }: ImportWorkDeps): Promise<ReadonlyMap<LogStream, Progress>> {
  const streams = await log.streams()
  return new Map(
    await Promise.all(streams.map(async ({ stream }) => [stream, await findProgress(jobs, stream)] as const)),
  )
}

function isOfProcessed(
  { logStream, logOffset }: HistoricEvent,
  projectId: number,
  progress: ReadonlyMap<LogStream, Progress>,
): boolean {
  const ofStream = progress.get(logStream)
  return ofStream === undefined || isProcessed(ofStream, projectId, logOffset + 1)
}
