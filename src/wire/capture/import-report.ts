// The answer to an import batch that asked for a report. Source: docs/wire/import.md §3.11.

import { type OutcomeTable, outcomeAt, rowCountOf, TableRecords } from '#core/capture/outcome-table.ts'
import { type BatchSummary, SummaryWriter } from '#core/events/batch-summary.ts'
import { buildIdentityKey, type EventIdentity } from '#core/events/stored-event.ts'
import type { RecordView } from '#core/log/record-view.ts'
import type { Steps } from '#core/maybe-steps.ts'

const itemsPerStep = 500

export interface BatchImportReport {
  readonly accepted: number
  /** Accepted events that repeat an earlier one of the same request, or are stored already. */
  readonly duplicates: number
  readonly recent: number
  /** Accepted events, each repeated event counted once; 0 for a batch that is marked as an import. */
  readonly charged: number
  /**
   * A list of `FailedRecord`s as JSON text, because a body of 150 KB may have 50,000 of them and a thread may have to
   * hand them over.
   */
  readonly failedJson: string
  /** The accepted events. */
  readonly events: BatchSummary
}

interface FailedRecord {
  readonly index: number
  readonly uuid: string | null
  readonly field: string | null
  readonly reason: string
}

/**
 * Derives the report from the outcome table once every outcome is final and before any record is removed from it. It
 * does not say what was stored.
 * @param recentFromMs epoch ms.
 */
export function* readImportReport(table: OutcomeTable, recentFromMs: number): Steps<BatchImportReport> {
  const records = new TableRecords(table)
  const failed: string[] = []
  const events = new SummaryWriter()
  let accepted = 0
  let recent = 0
  let charged = 0
  for (let row = 0; row < rowCountOf(table); row++) {
    const { isStored, result, reason, field } = outcomeAt(table, row)
    const record = records.at(row)
    if (isStored && result !== 'drop') {
      accepted++
      if (record.timestampMs > recentFromMs) recent++
      if (events.add(toEventIdentity(record)) && !record.isImport) charged++
    } else
      failed.push(
        JSON.stringify({
          index: row,
          uuid: record.uuid || null,
          field: result === 'reject' ? record.field || null : field,
          reason: reason ?? result,
        } satisfies FailedRecord),
      )
    if (row % itemsPerStep === itemsPerStep - 1) yield
  }
  const summary = events.summary()
  const failedJson = `[${failed.join(',')}]`
  return { accepted, duplicates: accepted - summary.count, recent, charged, failedJson, events: summary }
}

/**
 * The accepted events of a final table, each once, while the log has not taken over its records yet; the events' project is
 * 0.
 */
export function* readEventIdentities(table: OutcomeTable): Steps<EventIdentity[]> {
  const records = new TableRecords(table)
  const identities = new Map<string, EventIdentity>()
  for (let row = 0; row < rowCountOf(table); row++) {
    const { isStored, result } = outcomeAt(table, row)
    if (isStored && result !== 'drop') {
      const identity = toEventIdentity(records.at(row))
      identities.set(buildIdentityKey(identity), identity)
    }
    if (row % itemsPerStep === itemsPerStep - 1) yield
  }
  return [...identities.values()]
}

function toEventIdentity({ timestampMs, name, distinctId, uuid }: RecordView): EventIdentity {
  return { projectId: 0, timestampMs, event: name, distinctId, uuid }
}

export function encodeImportReport({ accepted, duplicates, recent, charged, failedJson }: BatchImportReport): string {
  const counts = JSON.stringify({ status: 'Ok', accepted, duplicates, recent, charged })
  return `${counts.slice(0, -1)},"failed_records":${failedJson}}`
}
