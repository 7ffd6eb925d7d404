import type { CapturedEvent, CapturedReject, LogRecord } from '#core/events/captured-event.ts'
import type { RecordAt } from '#core/events/log-stream.ts'
import { type EncodedRecords, RecordEncoder } from '#core/log/record-codec.ts'

/**
 * A live event as the edge accepts it. Its uuid and distinct id derive from `n`, so that tests can tell events apart.
 */
export function aCapturedEvent(n: number, over: Partial<CapturedEvent> = {}): CapturedEvent {
  return {
    projectId: 1,
    token: 'phc_test_token',
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    protocol: 'v0',
    personProcessingForcedOff: false,
    notes: 0,
    receivedAtMs: 1_790_000_000_000 + n,
    capturedAtMs: 1_790_000_000_001 + n,
    timestampMs: 1_789_999_999_000 + n,
    sentAtMs: null,
    uuid: `0199a000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
    name: '$pageview',
    distinctId: `person-${n}`,
    ip: '203.0.113.7',
    visitor: null,
    propertiesJson: '{"$current_url":"https://example.com/","n":1.0}',
    setJson: null,
    setOnceJson: null,
    ...over,
  }
}

export function aCapturedReject(over: Partial<CapturedReject> = {}): CapturedReject {
  return {
    projectId: 1,
    token: 'phc_test_token',
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    receivedAtMs: 1_790_000_000_000,
    capturedAtMs: 1_790_000_000_001,
    reason: 'missing_event_name',
    field: 'event',
    uuid: '',
    name: '',
    distinctId: 'ada',
    body: '{"distinct_id":"ada"}',
    ...over,
  }
}

export function offsetsOf({ records }: { readonly records: readonly RecordAt[] }): number[] {
  return records.map(({ offset }) => offset)
}

/** The records with their offsets, counted up from `firstOffset`. */
export function recordsAt(records: readonly LogRecord[], firstOffset = 0): RecordAt[] {
  return records.map((record, index) => ({ offset: firstOffset + index, record }))
}

/** The events as one encoded run for the log. */
export function encodedEvents(events: readonly CapturedEvent[]): EncodedRecords {
  const encoder = new RecordEncoder()
  for (const event of events) encoder.addEvent(event)
  return encoder.finish()
}

/** For a worker that never meets a visitor without cookies. */
export function noSalts(): never {
  throw new Error('a salt was asked for')
}
