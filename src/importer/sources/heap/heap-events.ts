// Rows of Heap's event tables: page views and labelled events. Source: docs/wire/import.md §1.4.

import type { JsonObject } from '#core/json.ts'
import { contentUuid, rootUuid } from '#importer/records/deterministic-uuid.ts'
import { chooseId, eventIdText, idText, legalId } from '#importer/records/distinct-ids.ts'
import type { ConvertedRecord } from '#importer/records/imported-event.ts'
import { putProperty, readEventName, readTextField } from '#importer/records/record-fields.ts'
import { putHeapField } from './heap-fields.ts'
import { type HeapLookups, readHeapTime } from './heap-lookups.ts'

/** Fields that are mapped individually. */
const consumed = new Set(['event_id', 'user_id', 'session_id', 'time', 'domain', 'query', 'hash'])

export function convertHeapEvent(table: string, row: JsonObject, lookups: HeapLookups): ConvertedRecord {
  const userId = legalId(row.user_id)
  const identity = lookups.identityOf(userId)
  const distinctId = chooseId(
    [
      { value: identity ?? undefined, field: 'identity' },
      { value: row.user_id, field: 'user_id' },
    ],
    'distinct_id',
  )
  const event = table === 'pageviews' ? '$pageview' : readEventName(table, 'table')
  const timeUs = readHeapTime(row, 'time', lookups.window)
  const eventId = eventIdText(row.event_id)
  const uuid = eventId === null ? contentUuid('heap', row) : rootUuid('heap', table, eventId)
  return { events: [{ uuid, event, sourceName: table, distinctId, timeUs, properties: mapProperties(row, userId) }] }
}

function mapProperties(row: JsonObject, userId: string | null): JsonObject {
  const properties: JsonObject = {}
  for (const [field, value] of Object.entries(row)) if (!consumed.has(field)) putHeapField(properties, field, value)
  putPage(properties, row)
  putProperty(properties, '$heap_user_id', userId)
  putProperty(properties, '$heap_session_id', idText(row.session_id))
  return properties
}

/** Ignores `landing_page`, which is the first page of the session and not this one. */
function putPage(properties: JsonObject, row: JsonObject): void {
  const domain = readTextField(row, 'domain')
  const query = readTextField(row, 'query')
  const hash = readTextField(row, 'hash')
  if (domain === null) {
    putProperty(properties, 'query', query)
    putProperty(properties, 'hash', hash)
    return
  }
  const path = readTextField(row, 'path')
  const url = `https://${domain}${addLeadingChar(path, '/')}${addLeadingChar(query, '?')}${addLeadingChar(hash, '#')}`
  putProperty(properties, '$host', domain)
  putProperty(properties, '$current_url', url)
}

/** Adds the character with which the part of a URL starts, which only some exports write. */
function addLeadingChar(part: string | null, first: string): string {
  return part === null ? '' : part.startsWith(first) ? part : `${first}${part}`
}
