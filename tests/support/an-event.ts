import { randomUUID } from 'node:crypto'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import { flagCallOf } from '#core/processing/thin-flag-calls.ts'

/** A stored live event of project 1; fields may be replaced. */
export function anEvent(over: Partial<StoredEvent> = {}): StoredEvent {
  const timestampMs = over.timestampMs ?? Date.parse('2026-11-05T10:00:00.123Z')
  return {
    projectId: 1,
    uuid: randomUUID(),
    event: '$pageview',
    distinctId: 'ada',
    timestampMs,
    capturedAtMs: timestampMs,
    chargedAtMs: over.capturedAtMs ?? timestampMs,
    lane: 'main',
    historicalMigration: false,
    importJobId: 0,
    propertiesJson: '{}',
    elementsChain: '',
    personId: '0192a4b0-0000-7000-8000-000000000001',
    personCreatedAtMs: Date.parse('2026-10-01T00:00:00Z'),
    personPropertiesJson: '{}',
    personMode: 'full',
    groups: ['', '', '', '', ''],
    sessionId: '',
    windowId: '',
    flags: new Map(),
    ...flagCallOf(
      over.event ?? '',
      over.propertiesJson === undefined ? {} : (parseJson(over.propertiesJson) as JsonObject),
    ),
    ...over,
  }
}

/** The same event, as stored for an import job. */
export function imported(event: StoredEvent, importJobId: number, over: Partial<StoredEvent> = {}): StoredEvent {
  const chargedAtMs = over.capturedAtMs ?? event.capturedAtMs
  return { ...event, lane: 'historical', historicalMigration: true, importJobId, chargedAtMs, ...over }
}
