// Reads the history of persons or groups for one batch of undoing an import or of repairing persons.

import type { LogStream } from '#core/events/log-stream.ts'
import { usualOptions } from '#core/imports/import-job.ts'
import type { History } from '#core/processing/history/fold-history.ts'
import { type HistoricEvent, orderHistory, type PublishedJob } from '#core/processing/history/historic-event.ts'
import { type JobBatch, ProjectGoneError } from '#core/processing/imports/publish-staging.ts'
import { foundCharsMax, foundRowsMax, type HistorySubjects } from '#ports/events/event-history.ts'
import { findAllProgress, isRecordProcessed, type StreamProgress } from '../progress/find-progress.ts'
import type { ImportWorkDeps } from './job-batch.ts'

/** Distinct ids whose links are looked up at once. */
export const pageSize = 10_000
/**
 * Distinct ids, or groups, per transaction: the live stream waits while the transaction commits. Smaller batches cost more,
 * since the event store searches all of the project's events for each.
 */
const batchSizeMax = 5_000
/**
 * A batch should fill about this share of what one reading may find, so that the event store hardly ever refuses to list
 * its events.
 */
const filledShare = 0.7

/** How many items the next batch may have, judged by how much of a reading the items of the last batches filled. */
export class BatchSize {
  #shareOfItem = 0

  max(): number {
    return Math.min(batchSizeMax, filledShare / this.#shareOfItem)
  }

  /** @param share the share of a reading's maximum that these items filled. */
  learn(share: number, itemCount: number): void {
    this.#shareOfItem = Math.max(share / itemCount, this.#shareOfItem / 2)
  }
}

/** A unit that is larger than a batch becomes a batch by itself. */
export function* groupIntoBatches<Item>(
  units: readonly (readonly Item[])[],
  sizeOfNext: BatchSize,
): Generator<readonly (readonly Item[])[]> {
  let batch: (readonly Item[])[] = []
  let size = 0
  for (const unit of units) {
    if (size + unit.length > sizeOfNext.max() && batch.length > 0) {
      yield batch
      batch = []
      size = 0
    }
    batch.push(unit)
    size += unit.length
  }
  if (batch.length > 0) yield batch
}

/** Call it after the load. @throws PortError; `QueryTooLargeError` if there are too many events; ProjectGoneError */
export async function readHistory(
  { projectId, loaded }: JobBatch,
  { jobs, events: store, log }: ImportWorkDeps,
  subjects: HistorySubjects,
): Promise<History & { readonly events: readonly HistoricEvent[]; readonly share: number }> {
  const project = loaded.projects.find(each => each.id === projectId)
  if (project === undefined) throw new ProjectGoneError(`project ${projectId} is gone`)
  const { distinctIds } = subjects
  const splits = distinctIds === undefined ? [] : await jobs.listSplitIds(projectId, distinctIds)
  const progress = await findAllProgress(jobs, log)
  const stored = distinctIds?.length === 0 ? [] : await store.readHistory(projectId, subjects)
  // Leaves out events that are not processed yet: they will be applied to the result of this commit.
  const processed = stored.filter(event => isEventProcessed(event, projectId, progress))
  const events = removeErasedPast(processed, await jobs.listErasedPasts(projectId, distinctIds ?? []))
  const published = new Map<number, PublishedJob>()
  for (const id of new Set(events.filter(({ isOfJob }) => isOfJob).map(({ importJobId }) => importJobId))) {
    const job = await jobs.findImportJob(id)
    const { options = usualOptions, publishBeganAtMs = null } = job ?? {}
    if (publishBeganAtMs !== null) published.set(id, { id, options, publishBeganAtMs })
  }
  const groupTypes = loaded.groupTypes.filter(type => type.projectId === projectId)
  const of = distinctIds === undefined ? 'groups' : 'persons'
  return {
    project,
    groupTypes,
    of,
    splits,
    items: orderHistory(events, published),
    events,
    share: computeShare(stored),
  }
}

/** The share of the maximum of one reading that these events take, 0 to 1. */
function computeShare(events: readonly HistoricEvent[]): number {
  const changing = events.filter(({ changesJson, linkedId }) => changesJson !== '{}' || linkedId !== '')
  const rowCount = Math.max(changing.length, events.length - changing.length)
  const charCount = changing.reduce((sum, { changesJson }) => sum + changesJson.length, 0)
  return Math.max(rowCount / foundRowsMax, charCount / foundCharsMax)
}

/** Leaves out the events that erased persons had, and links with their distinct ids. */
function removeErasedPast(
  events: readonly HistoricEvent[],
  pasts: readonly { readonly distinctId: string; readonly erasures: number }[],
): readonly HistoricEvent[] {
  if (pasts.length === 0) return events
  const erasures = new Map<string, number>()
  for (const past of pasts) erasures.set(past.distinctId, Math.max(past.erasures, erasures.get(past.distinctId) ?? 0))
  const isPast = (id: string, { erasuresBefore }: HistoricEvent) => erasuresBefore < (erasures.get(id) ?? 0)
  return events
    .filter(event => !isPast(event.distinctId, event))
    .map(event => (isPast(event.linkedId, event) ? { ...event, linkedId: '' } : event))
}

function isEventProcessed(
  { logStream, logOffset }: HistoricEvent,
  projectId: number,
  progress: ReadonlyMap<LogStream, StreamProgress>,
): boolean {
  const ofStream = progress.get(logStream)
  return ofStream === undefined || isRecordProcessed(ofStream, projectId, logOffset + 1)
}
