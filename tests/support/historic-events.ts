// Builds events as the event store's history has them.

import type { HistoricEvent } from '#core/processing/history/historic-event.ts'

/** A live event of a person with a profile, which writes nothing. */
export function aHistoricEvent(over: Partial<HistoricEvent> = {}): HistoricEvent {
  return {
    uuid: '0199a000-0000-4000-8000-000000000001',
    event: 'e',
    distinctId: 'ada',
    linkedId: '',
    lane: 'main',
    personMode: 'full',
    historicalMigration: false,
    importJobId: 0,
    logStream: 'main',
    logOffset: 1,
    timestampMs: 1_789_999_999_000,
    storedAtMs: 1_790_000_000_000,
    erasuresBefore: 0,
    isRestored: false,
    isOfJob: false,
    changesJson: '{}',
    ...over,
  }
}
