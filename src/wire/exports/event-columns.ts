// The columns of exported events. Names and values match the list; fields that the list derives from others
// (`elements`, `person`) are omitted.

import type { EventToEncode } from '#wire/management/events.ts'
import type { ExportColumn } from './export-column.ts'

export interface EventRow {
  readonly event: EventToEncode
  /** The cursor for resuming an export after this event. */
  readonly cursor: string
}

export const eventColumns: readonly ExportColumn<EventRow>[] = [
  { name: 'cursor', kind: 'text', read: ({ cursor }) => cursor },
  { name: 'uuid', kind: 'text', read: ({ event }) => event.uuid },
  { name: 'event', kind: 'text', read: ({ event }) => event.event },
  { name: 'distinct_id', kind: 'text', read: ({ event }) => event.distinctId },
  { name: 'timestamp', kind: 'instant', read: ({ event }) => event.timestampMs },
  { name: 'properties', kind: 'json', read: ({ event }) => textOrEmptyObject(event.propertiesJson) },
  { name: 'person_id', kind: 'text', read: ({ event }) => event.personId },
  { name: 'person_mode', kind: 'text', read: ({ event }) => event.personMode },
  {
    name: 'person_created_at',
    kind: 'instant',
    read: ({ event }) => (event.personCreatedAtMs === 0 ? null : event.personCreatedAtMs),
  },
  { name: 'person_properties', kind: 'json', read: ({ event }) => textOrEmptyObject(event.personPropertiesJson) },
  { name: 'elements_chain', kind: 'text', read: ({ event }) => event.elementsChain },
  { name: 'lane', kind: 'text', read: ({ event }) => event.lane },
  { name: 'historical_migration', kind: 'boolean', read: ({ event }) => event.historicalMigration },
  { name: 'import_job_id', kind: 'integer', read: ({ event }) => event.importJobId },
  { name: 'captured_at', kind: 'instant', read: ({ event }) => event.capturedAtMs },
  { name: 'created_at', kind: 'instant', read: ({ event }) => event.createdAtMs },
]

function textOrEmptyObject(json: string): string {
  return json === '' ? '{}' : json
}
