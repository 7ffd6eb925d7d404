// The stored events of some persons or groups, in the order in which the events changed them.

import type { StoredEvent } from '#core/events/stored-event.ts'
import type { ImportOptions } from '#core/imports/import-job.ts'
import { type JsonObject, parseJson } from '#core/json.ts'

/** The fields of an event store row that change persons and groups. Every copy of an event is a separate row. */
export interface HistoricEvent
  extends Pick<
    StoredEvent,
    | 'uuid'
    | 'event'
    | 'distinctId'
    | 'linkedId'
    | 'lane'
    | 'personMode'
    | 'historicalMigration'
    | 'importJobId'
    | 'logStream'
    | 'logOffset'
  > {
  /** The event's time as the client sent it, epoch ms. */
  readonly timestampMs: number
  /** When the row was written, epoch ms. */
  readonly storedAtMs: number
  /**
   * The row was made again from its log record, after the event had been processed: with the persons of that time, and
   * stored at that time.
   */
  readonly isRestored: boolean
  /** How often persons of the project had been erased when the row was made. */
  readonly erasuresBefore: number
  /** The event belongs to a job that changes persons and groups when it is published, and not when the event arrives. */
  readonly isOfJob: boolean
  /** JSON text of an object, with the event's properties that change persons or groups. */
  readonly changesJson: string
}

/** An event with its parsed `changesJson`. */
export type ParsedHistoricEvent = HistoricEvent & { readonly changes: JsonObject }

export interface PublishedJob {
  readonly id: number
  readonly options: ImportOptions
  readonly publishBeganAtMs: number
}

/** One change: an event that was applied when it arrived, or the publishing of a job with its events. */
export type HistoryItem =
  | { readonly atMs: number; readonly event: ParsedHistoricEvent; readonly job: null }
  | {
      readonly atMs: number
      readonly event: null
      readonly job: PublishedJob
      readonly events: readonly ParsedHistoricEvent[]
    }

/**
 * Puts events in the order of their processing: by offset within a stream of the log, by time of storing across streams. A
 * job's events take effect when its publishing began. Within a stream, the time never runs backwards, even if the clock
 * did.
 * @param events in any order; of several rows of one log record, which are tries of one chunk, the last one counts; a restored row
 * counts only if the record has no other row.
 * @param jobs all jobs of `events` by id; events of other jobs are left out, because they change nothing yet, or no longer
 * change anything.
 */
export function orderHistory(
  events: readonly HistoricEvent[],
  jobs: ReadonlyMap<number, PublishedJob>,
): readonly HistoryItem[] {
  const applied: HistoryItem[] = []
  const ofJobs: ParsedHistoricEvent[] = []
  for (const ofStream of Map.groupBy(events, ({ logStream }) => logStream).values()) {
    const ordered = ofStream.toSorted(
      (a, b) => a.logOffset - b.logOffset || compareRestored(a, b) || a.storedAtMs - b.storedAtMs,
    )
    let atMs = Number.NEGATIVE_INFINITY
    for (const [index, event] of ordered.entries()) {
      const next = ordered[index + 1]
      if (event.logStream !== '' && next?.logOffset === event.logOffset) continue
      const read = { ...event, changes: parseJson(event.changesJson) as JsonObject }
      if (event.isOfJob) {
        // An event of a job changes nothing when it is stored, so its time does not count in the order of the stream's
        // other events.
        ofJobs.push(read)
        continue
      }
      atMs = Math.max(atMs, event.storedAtMs)
      applied.push({ atMs, event: read, job: null })
    }
  }
  for (const [id, ofJob] of Map.groupBy(ofJobs, ({ importJobId }) => importJobId)) {
    const job = jobs.get(id)
    if (job !== undefined) applied.push({ atMs: job.publishBeganAtMs, event: null, job, events: ofJob })
  }
  // The sort is stable, so an event stored in the millisecond in which a publishing began stays before it: it was committed
  // first.
  return applied.sort((a, b) => a.atMs - b.atMs)
}

/** Restored rows first, but rows without an offset only have their time of storing. */
function compareRestored(a: HistoricEvent, b: HistoricEvent): number {
  return a.logStream === '' ? 0 : Number(b.isRestored) - Number(a.isRestored)
}
