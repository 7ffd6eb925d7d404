// Google Analytics 4: rows of the BigQuery export as JSON, in which 64-bit integers are text.
// Source: docs/wire/import.md §1.5.

import {
  getOwnValue,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  readJsonNumber,
  setOwnValue,
} from '#core/json.ts'
import { dayMs } from '#core/time.ts'
import { toCanonicalJson } from '#importer/records/canonical-json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveImportUuid, hashCanonicalContent } from '#importer/records/deterministic-uuid.ts'
import { requireDistinctId, toIdText, toLegalId } from '#importer/records/distinct-ids.ts'
import { createIdentityLinks } from '#importer/records/generated-events.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { type Conversion, createSkippedOutcome } from '#importer/records/imported-event.ts'
import { isEmptyValue, readEventName } from '#importer/records/record-fields.ts'
import { readTimeField, type TimeWindow, usPerMs } from '#importer/records/source-time.ts'
import { mapGa4Properties } from './ga4-properties.ts'

/** A daily table can change for up to three days, so rows of a younger table may be exported again with other values. */
const settleDaysDefault = 4
const settleDaysMax = 30

const eventNames: ReadonlyMap<string, string> = new Map([
  ['page_view', '$pageview'],
  ['screen_view', '$screen'],
])
const sessionMarkers: ReadonlySet<string> = new Set(['session_start', 'first_visit'])

export const ga4 = defineSource(
  'ga4',
  'rows of the BigQuery export of Google Analytics 4, as JSON',
  (config, window) => {
    const settleDays = config.wholeNumber('settle_days') ?? settleDaysDefault
    if (settleDays < 0 || settleDays > settleDaysMax)
      throw new ImportConfigError(`settle_days in the configuration of ga4 must be from 0 to ${settleDaysMax}`)
    return {
      convert: ({ value }) => convertRow(value, window, settleDays),
      timeOf: ({ value }) => readRowTime(value, window),
    }
  },
)

function convertRow(row: JsonObject, window: TimeWindow, settleDays: number): Conversion {
  const name = readEventName(getOwnValue(row, 'event_name'), 'event_name')
  if (sessionMarkers.has(name)) return createSkippedOutcome('session_marker')
  // Without the user's consent, both ids are null, and we may not invent one.
  const [userId, deviceId] = [toLegalId(row.user_id), toLegalId(row.user_pseudo_id)]
  const distinctId = requireDistinctId(userId ?? deviceId)
  const timeUs = readRowTime(row, window)
  if (window.nowMs - readTableDayMs(row, timeUs) < settleDays * dayMs) return createSkippedOutcome('filtered')
  const event = eventNames.get(name) ?? name
  const properties = mapGa4Properties(row)
  return {
    events: [{ uuid: deriveUuid(row), event, sourceName: name, distinctId, timeUs, properties }],
    links: createIdentityLinks(userId, deviceId, timeUs),
    dropped: notKept.filter(field => !isEmptyValue(getOwnValue(row, field))),
  }
}

/** @throws RecordReject */
function readRowTime(row: JsonObject, window: TimeWindow): number {
  return readTimeField(row, 'event_timestamp', { zone: null, unit: 'us' }, window)
}

/** Fields that are only used to derive the uuid, or that repeat the time. */
const notKept = [
  ...['event_date', 'stream_id', 'event_bundle_sequence_id'],
  ...['batch_page_id', 'batch_ordering_id', 'batch_event_index'],
]

/** Fields that together identify an event, since the export has no event id. */
const uuidParts = [
  ...['stream_id', 'user_pseudo_id', 'event_name', 'event_timestamp', 'event_bundle_sequence_id'],
  ...['batch_page_id', 'batch_ordering_id', 'batch_event_index'],
]

/**
 * All events of a bundle have the same time. Exports since July 2024 have an event's place in the batch; without it, two
 * events of the same name differ only in their content. Rows without a bundle are identified only by `uuidParts`.
 */
function deriveUuid(row: JsonObject): string {
  const parts = uuidParts.map(part => toIdText(getOwnValue(row, part)) ?? '')
  const isPlaced = parts.at(-1) !== '' || toIdText(getOwnValue(row, 'event_bundle_sequence_id')) === null
  return deriveImportUuid('ga4', ...parts, ...(isPlaced ? [] : [hashEvent(row)]))
}

/**
 * Hash of the event's own content. Other columns are left out, since another export of the same day may add columns, or
 * have other values in them, such as in person columns.
 */
function hashEvent(row: JsonObject): string {
  const fields = ['event_params', 'items', 'ecommerce'].map(field => [field, getOwnValue(row, field) ?? null] as const)
  const normalized = normalizeValue(Object.fromEntries(fields)) as JsonObject
  const params = Array.isArray(normalized.event_params) ? normalized.event_params : []
  // The canonical JSON of a parameter starts with its key, so this sorts by key.
  return hashCanonicalContent({ ...normalized, event_params: params.map(toCanonicalJson).toSorted() })
}

/**
 * Normalizes the formats of the export: some write numbers (in several ways) and booleans as text, and omit null and empty
 * values.
 */
function normalizeValue(value: JsonValue): JsonValue {
  if (typeof value === 'string') return decimal.test(value) ? String(Number(value)) : value
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'number' || isRawNumber(value)) return toIdText(value) ?? String(readJsonNumber(value))
  if (Array.isArray(value)) return value.map(normalizeValue)
  if (!isJsonObject(value)) return value
  const normalized: JsonObject = {}
  for (const [field, each] of Object.entries(value)) {
    const comparableEach = normalizeValue(each)
    if (!isNullOrEmpty(comparableEach)) setOwnValue(normalized, field, comparableEach)
  }
  return normalized
}

/** Matches numbers with a fraction or an exponent. Whole numbers are not matched, since they keep all their digits. */
const decimal = /^-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)$/i

function isNullOrEmpty(value: JsonValue): boolean {
  return value === null || (typeof value === 'object' && Object.keys(value).length === 0)
}

/** @returns the start of the day of the row's table, as if it were a UTC day. */
function readTableDayMs({ event_date: date }: JsonObject, timeUs: number): number {
  const [, year, month, day] = /^(\d{4})-?(\d\d)-?(\d\d)$/.exec(toIdText(date) ?? '') ?? []
  if (year !== undefined) return Date.UTC(Number(year), Number(month) - 1, Number(day))
  return Math.floor(timeUs / usPerMs / dayMs) * dayMs
}
