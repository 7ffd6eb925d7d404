// The answer to a batch of an import that asked for a report. Source: docs/wire/import.md §3.11.

import { type OutcomeTable, outcomeAt, rowCountOf, TableRecords } from '#core/capture/outcome-table.ts'
import type { EventIdentity } from '#core/events/stored-event.ts'
import type { Steps } from '#core/maybe-steps.ts'
import { identityKey } from '#core/processing/charge-once.ts'

const itemsPerStep = 500

export interface ImportReport {
  readonly accepted: number
  /** Accepted events that repeat an earlier one of the same request, or are stored already. */
  readonly duplicates: number
  readonly recent: number
  readonly failed: readonly FailedRecord[]
  /** The accepted events, each once; their project is 0. */
  readonly identities: readonly EventIdentity[]
}

interface FailedRecord {
  readonly index: number
  readonly uuid: string | null
  readonly field: string | null
  readonly reason: string
}

/** Reads the report off the final table, which must still have all its records; what is stored is not known here. @param recentFromMs epoch ms. */
export function* readImportReport(table: OutcomeTable, recentFromMs: number): Steps<ImportReport> {
  const records = new TableRecords(table)
  const failed: FailedRecord[] = []
  const identities = new Map<string, EventIdentity>()
  let accepted = 0
  let recent = 0
  for (let row = 0; row < rowCountOf(table); row++) {
    const { isStored, result, reason, field } = outcomeAt(table, row)
    const record = records.at(row)
    if (isStored && result !== 'drop') {
      accepted++
      const { uuid, name: event, distinctId, timestampMs } = record
      if (timestampMs >= recentFromMs) recent++
      const identity = { projectId: 0, timestampMs, event, distinctId, uuid }
      identities.set(identityKey(identity), identity)
    } else
      failed.push({
        index: row,
        uuid: record.uuid || null,
        field: result === 'reject' ? record.field || null : field,
        reason: reason ?? result,
      })
    if (row % itemsPerStep === itemsPerStep - 1) yield
  }
  return { accepted, duplicates: accepted - identities.size, recent, failed, identities: [...identities.values()] }
}

export function encodeImportReport({ accepted, duplicates, recent, failed }: ImportReport): string {
  return JSON.stringify({
    status: 'Ok',
    accepted,
    duplicates,
    recent,
    charged: 0,
    failed_records: failed,
  })
}
