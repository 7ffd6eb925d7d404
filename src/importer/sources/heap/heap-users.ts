// Rows of Heap's users table: identities and user properties. Source: docs/wire/import.md §1.4.

import { type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { rootUuid } from '#importer/records/deterministic-uuid.ts'
import { chooseId, legalId } from '#importer/records/distinct-ids.ts'
import type { ConvertedRecord } from '#importer/records/imported-event.ts'
import { isEmptyValue, putPersonUpdates, putProperty } from '#importer/records/record-fields.ts'
import { formatTime, readTime } from '#importer/records/source-time.ts'
import type { TimeWindow } from '#importer/records/time-window.ts'
import { putHeapField, putHeapInitialField } from './heap-fields.ts'
import { type HeapLookups, heapTime, readHeapTime } from './heap-lookups.ts'

const consumed = new Set(['user_id', 'id', 'identity'])
const dates = new Set(['joindate', 'last_modified', 'lastseen', 'identity_time'])
const initialPrefix = 'initial_'
/** Heap's text for an absent date. */
const noDate = 'Invalid date'

/** The id assigned by Heap; one-off exports call it `id`. */
export function readHeapUserId(row: JsonObject): string | null {
  return legalId(ownValue(row, 'user_id') ?? ownValue(row, 'id'))
}

export function convertHeapUser(row: JsonObject, { window, identityOf }: HeapLookups): ConvertedRecord {
  const deviceId = readHeapUserId(row)
  const identity = identityOf(deviceId) ?? legalId(row.identity)
  const candidates = [
    { value: identity ?? undefined, field: 'identity' },
    { value: deviceId ?? undefined, field: 'user_id' },
  ]
  const distinctId = chooseId(candidates, 'distinct_id')
  const timeUs = readHeapUserTime(row, window)
  const uuid = rootUuid('heap', 'user', deviceId ?? '', formatTime(timeUs))
  const events = [{ uuid, event: '$set', sourceName: 'users', distinctId, timeUs, properties: buildUpdates(row) }]
  if (identity === null || deviceId === null) return { events }
  return { events, links: [{ userId: identity, deviceId, timeUs, properties: {} }] }
}

/** The time of the row's values. @throws RecordReject */
export function readHeapUserTime(row: JsonObject, window: TimeWindow): number {
  const field = isDate(row.last_modified) || !isDate(row.joindate) ? 'last_modified' : 'joindate'
  return readHeapTime(row, field, window)
}

function isDate(value: JsonValue | undefined): boolean {
  return value !== undefined && !isEmptyValue(value) && value !== noDate
}

function buildUpdates(row: JsonObject): JsonObject {
  const set: JsonObject = {}
  const setOnce: JsonObject = {}
  for (const [field, value] of Object.entries(row)) {
    if (consumed.has(field)) continue
    if (field.startsWith(initialPrefix)) putHeapInitialField(setOnce, field.slice(initialPrefix.length), value)
    else if (dates.has(field)) putProperty(set, field, formatDate(value, field))
    else putHeapField(set, field, value)
  }
  const properties: JsonObject = {}
  putPersonUpdates(properties, { set, setOnce })
  return properties
}

/** @returns the date in ISO 8601; null for no date. */
function formatDate(value: JsonValue, field: string): string | null {
  if (!isDate(value)) return null
  const timeUs = readTime(value, heapTime, field)
  return timeUs === null ? null : formatTime(timeUs)
}
