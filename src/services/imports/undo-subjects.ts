// Undoes what a published job did to persons and groups, in batches: reads their events, folds them with and without the
// job's events, and commits the difference.

import type { GroupIdentity } from '#core/events/group-identity.ts'
import { type ImportNote, noteSampleCountMax, type UndoRefusal } from '#core/imports/import-changes.ts'
import type { ImportJob } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { type ChunkSubjects, noChunkChanges } from '#core/processing/chunk.ts'
import { applyHistoryDifference } from '#core/processing/history/apply-difference.ts'
import { foldHistoryWithAndWithoutJob } from '#core/processing/history/fold-history.ts'
import type { JobNote } from '#core/processing/imports/publish-staging.ts'
import type { HistorySubjects } from '#ports/events/event-history.ts'
import { type ConnectedIds, findConnectedIds, findNewlyLinkedIds } from './find-connected-ids.ts'
import { createJobBatch, type ImportWorkDeps, runJobBatch } from './job-batch.ts'
import { BatchSize, groupIntoBatches, pageSize, readHistory } from './read-history.ts'

const triesMax = 8
const distinctNotesMax = 200_000

const notReadable: UndoRefusal = 'undo_left:events_not_readable'

/** Items are distinct ids, or groups; the items of one unit are undone together. */
interface Kind<Item> {
  list(after: Item | null): Promise<readonly Item[]>
  findUnits(items: readonly Item[]): Promise<ConnectedIds<Item>>
  /** The items that an event links with other items; such an event arrived after `findUnits`. */
  findOpen(items: readonly Item[]): Promise<readonly Item[]>
  subjectsOf(items: readonly Item[]): Pick<ChunkSubjects, 'distinctIds' | 'mergingDistinctIds' | 'groups'>
  historyOf(items: readonly Item[]): HistorySubjects
  /** For a note. */
  describe(unit: readonly Item[]): JsonObject
}

const shownIdsMax = 20

/** Counts what an undo leaves unchanged, by reason. */
export class UndoNotes {
  readonly #counts = new Map<string, { count: number; samples: JsonObject[] }>()
  /**
   * Persons counted so far, since several pages and batches may have ids of one person. Beyond a maximum, a person may
   * count again.
   */
  readonly #seen = new Set<string>()

  add({ reason, details }: JobNote): void {
    const key = `${reason} ${JSON.stringify(details)}`
    if (this.#seen.has(key)) return
    if (this.#seen.size < distinctNotesMax) this.#seen.add(key)
    const counted = this.#counts.get(reason) ?? { count: 0, samples: [] }
    this.#counts.set(reason, counted)
    counted.count++
    if (counted.samples.length < noteSampleCountMax) counted.samples.push(details)
  }

  notes(importJobId: number): ImportNote[] {
    return Array.from(this.#counts, ([reason, counted]) => ({ importJobId, reason, ...counted }))
  }
}

/** Adds to `left` what the undo leaves unchanged. @throws PortError, NotOwnerError */
export function undoPersons(job: ImportJob, deps: ImportWorkDeps, left: UndoNotes, signal: AbortSignal): Promise<void> {
  const { id, projectId } = job
  return undoAll<string>(job, deps, left, signal, {
    list: after => deps.events.listJobIds(projectId, id, after, pageSize),
    findUnits: ids => findConnectedIds(projectId, ids, deps, signal),
    findOpen: ids => findNewlyLinkedIds(projectId, ids, deps),
    subjectsOf: ids => {
      const distinctIds = ids.map(distinctId => ({ projectId, distinctId }))
      return { distinctIds, mergingDistinctIds: distinctIds, groups: [] }
    },
    historyOf: distinctIds => ({ distinctIds }),
    describe: ids => ({ distinctIds: ids.toSorted().slice(0, shownIdsMax) }),
  })
}

/** As for persons. */
export function undoGroups(job: ImportJob, deps: ImportWorkDeps, left: UndoNotes, signal: AbortSignal): Promise<void> {
  const { id, projectId } = job
  return undoAll<GroupIdentity>(job, deps, left, signal, {
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
  left: UndoNotes,
  signal: AbortSignal,
  kind: Kind<Item>,
): Promise<void> {
  const size = new BatchSize()
  for (let after: Item | null = null; !signal.aborted; ) {
    let items = await kind.list(after)
    if (items.length === 0) break
    after = items.at(-1)!
    for (let tries = 1; items.length > 0 && !signal.aborted; tries++) {
      const { found, unreadable } = await kind.findUnits(items)
      for (const unit of unreadable) left.add({ reason: notReadable, details: kind.describe(unit) })
      const again: Item[] = []
      for (const units of groupIntoBatches(found, size)) {
        const undone = await undoUnits(job, deps, signal, kind, units)
        size.learn(undone.share, units.flat().length)
        for (const note of undone.notes) left.add(note)
        for (const unit of undone.open)
          if (tries < triesMax) again.push(...unit)
          else left.add({ reason: notReadable, details: kind.describe(unit) })
      }
      items = again
    }
  }
}

interface Undone<Item> {
  readonly notes: readonly JobNote[]
  /** The sum of the shares of their maximum that the readings found: a full reading adds 1. */
  readonly share: number
  /** Units that have been linked with others since they were found; they were left unchanged. */
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
  /** Keyed by the first unit of each (half) batch, since a batch that conflicts or is halved is computed again. */
  const parts = new Map<readonly Item[], Undone<Item>>()
  await runJobBatch(
    deps,
    signal,
    units,
    some => ({ ...kind.subjectsOf(some.flat()), projectIds: [projectId] }),
    async (some, loaded, published) => {
      // Queried after the load: a commit after the load makes this commit a conflict.
      const openItems = new Set<unknown>(await kind.findOpen(some.flat()))
      const open = some.filter(unit => unit.some(item => openItems.has(item)))
      const batch = createJobBatch(job, loaded, published)
      const { events, share, ...history } = await readHistory(batch, deps, kind.historyOf(some.flat()))
      const { with: was, without: wanted } = foldHistoryWithAndWithoutJob(history, id)
      const restored = wanted.persons.map(({ uuid }) => uuid)
      const assignments = await deps.jobs.findAssignments(id, restored)
      const idsWithEvents = new Set(events.map(({ distinctId }) => distinctId))
      const openIds = new Set<unknown>(open.flat())
      const { notes, ...changes } = applyHistoryDifference({
        ...batch,
        was,
        wanted,
        idsWithEvents,
        openIds,
        assignments,
      })
      parts.set(some[0]!, { notes, open, share })
      return changes
    },
    ([unit]) => {
      const note = { reason: notReadable, details: kind.describe(unit!) }
      parts.set(unit!, { notes: [note], open: [], share: 1 })
      return { overrides: [], changes: noChunkChanges }
    },
  )
  const all = [...parts.values()]
  return {
    notes: all.flatMap(({ notes }) => notes),
    open: all.flatMap(({ open }) => open),
    share: all.reduce((sum, { share }) => sum + share, 0),
  }
}
