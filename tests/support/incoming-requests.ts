// Builders of capture requests as the parsers produce them, and readers of the prepared results.

import type { IncomingEvent, IncomingItem, IncomingRequest, IncomingV1Event } from '#core/capture/incoming-event.ts'
import { type OutcomeTable, outcomeAt, rowCountOf } from '#core/capture/outcome-table.ts'
import type { Outcome } from '#core/capture/outcomes.ts'
import { type PreparedRequest, prepareEvents } from '#core/capture/prepare-events.ts'
import type { DecodedRecord } from '#core/events/captured-event.ts'
import { addRecordChecksums, type EncodedRecords } from '#core/log/record-codec.ts'
import { decodeRecords } from './decode-records.ts'

export const receivedAtMs = Date.parse('2025-07-01T11:00:00Z')

export function anIncomingEvent(over: Partial<IncomingEvent> = {}): IncomingEvent {
  return {
    kind: 'event',
    name: 'e',
    distinctId: 'ada',
    uuid: null,
    timestamp: null,
    offsetMs: null,
    ignoreSentAt: false,
    isCookieless: false,
    cookielessModeInvalid: false,
    captureInternal: false,
    propertiesJson: '{}',
    setJson: null,
    setOnceJson: null,
    ...over,
  }
}

export function anIncomingV1Event(over: Partial<IncomingV1Event> = {}): IncomingV1Event {
  const { propertiesJson = '{}' } = over
  return {
    kind: 'event',
    name: 'signed up',
    uuid: '0197c5a0-0000-7000-8000-000000000001',
    distinctId: 'ada',
    timestamp: '2025-07-01T10:00:00Z',
    sessionId: null,
    windowId: null,
    options: null,
    propertiesJson,
    properties: propertiesJson === null ? {} : JSON.parse(propertiesJson),
    ...over,
  }
}

export function anIncomingRequest(
  items: readonly IncomingItem[],
  over: Partial<IncomingRequest> = {},
): IncomingRequest {
  return {
    token: 'phc_x',
    historicalMigration: false,
    sentAtMs: null,
    items,
    isItemised: false,
    sourceJson: row => `{"item":${row}}`,
    placeOf: row => `batch.${row}.`,
    ...over,
  }
}

export function aTable(
  items: readonly IncomingItem[],
  over: Partial<IncomingRequest> = {},
  received: { readonly rerouteOlderThanMs?: number } = {},
): OutcomeTable {
  return prepareEvents(anIncomingRequest(items, over), { receivedAtMs, ip: '', random: () => 0, ...received })
}

export function aPreparedRequest(
  items: readonly IncomingItem[] = [anIncomingEvent()],
  over: Partial<IncomingRequest> = {},
): PreparedRequest {
  const { token, historicalMigration } = anIncomingRequest(items, over)
  return { protocol: 'v0', token, historicalMigration, table: aTable(items, over), body: 'the body' }
}

/** `result` or `result: reason` for each row. */
export function outcomesOf(table: OutcomeTable): string[] {
  const text = ({ result, reason }: Outcome) => (reason === null ? result : `${result}: ${reason}`)
  return Array.from({ length: rowCountOf(table) }, (_, row) => text(outcomeAt(table, row)))
}

/** The records of a run, as the log's readers decode them. */
export function decoded(records: EncodedRecords | null): DecodedRecord[] {
  if (records === null) return []
  addRecordChecksums(records.bytes)
  return decodeRecords(records.bytes, records.recordCount)
}
