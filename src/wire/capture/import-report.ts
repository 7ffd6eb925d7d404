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
  /** Accepted events of no import, repeats once: those of a batch that is not marked as one. */
  readonly charged: number
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
  let charged = 0
  for (let row = 0; row < rowCountOf(table); row++) {
    const { isStored, result, reason, field } = outcomeAt(table, row)
    const record = records.at(row)
    if (isStored && result !== 'drop') {
      accepted++
      const { uuid, name: event, distinctId, timestampMs } = record
      if (timestampMs >= recentFromMs) recent++
      const identity = { projectId: 0, timestampMs, event, distinctId, uuid }
      const key = identityKey(identity)
      if (!record.isImport && !identities.has(key)) charged++
      identities.set(key, identity)
    } else
      failed.push({
        index: row,
        uuid: record.uuid || null,
        field: result === 'reject' ? record.field || null : field,
        reason: reason ?? result,
      })
    if (row % itemsPerStep === itemsPerStep - 1) yield
  }
  const duplicates = accepted - identities.size
  return { accepted, duplicates, recent, charged, failed, identities: [...identities.values()] }
}

export function encodeImportReport({ accepted, duplicates, recent, charged, failed }: ImportReport): string {
  return JSON.stringify({
    status: 'Ok',
    accepted,
    duplicates,
    recent,
    charged,
    failed_records: failed,
  })
}
