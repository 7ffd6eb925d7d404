// The columns of exported events and persons. Names and values match the lists of the private API, except that fields which
// the list of events derives from others (`elements`, `person`) are omitted, and that a person's `distinct_ids` has all
// distinct ids.

import type { EventToEncode } from '#wire/management/events.ts'
import { encodePersonHead, type PersonToEncode } from '#wire/management/persons/persons.ts'
import type { ExportColumn } from './export-column.ts'

export interface ExportedEventRow {
  readonly event: EventToEncode
  /** The cursor for resuming an export after this event. */
  readonly cursor: string
}

export const eventColumns: readonly ExportColumn<ExportedEventRow>[] = [
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

export interface ExportedPersonRow {
  readonly head: ReturnType<typeof encodePersonHead>
  readonly createdAtMs: number
  readonly propertiesJson: string
}

export function toPersonRow(person: PersonToEncode): ExportedPersonRow {
  return { head: encodePersonHead(person), createdAtMs: person.createdAtMs, propertiesJson: person.propertiesJson }
}

/** The cursor for resuming an export after this person. */
export function personCursorOf({ head }: ExportedPersonRow): string {
  return String(head.id)
}

export const personColumns: readonly ExportColumn<ExportedPersonRow>[] = [
  { name: 'cursor', kind: 'text', read: personCursorOf },
  { name: 'uuid', kind: 'text', read: ({ head }) => head.uuid },
  { name: 'name', kind: 'text', read: ({ head }) => head.name },
  { name: 'distinct_ids', kind: 'json', read: ({ head }) => JSON.stringify(head.distinct_ids) },
  { name: 'properties', kind: 'json', read: ({ propertiesJson }) => propertiesJson },
  { name: 'created_at', kind: 'instant', read: ({ createdAtMs }) => createdAtMs },
  { name: 'is_identified', kind: 'boolean', read: ({ head }) => head.is_identified },
  { name: 'version', kind: 'integer', read: ({ head }) => head.version },
  { name: 'distinct_id_versions', kind: 'json', read: ({ head }) => JSON.stringify(head.distinct_id_versions) },
  { name: 'flag_overrides', kind: 'json', read: ({ head }) => JSON.stringify(head.flag_overrides) },
]
