// Heap: rows of its tables, from Heap Connect or a one-off export. The table of a row decides how it is converted.
// Source: docs/wire/import.md §1.4.

import { getOwnValue, type JsonObject, type JsonValue } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { requireDistinctId, toEventIdText, toIdText, toLegalId } from '#importer/records/distinct-ids.ts'
import { createIdentityLinks, isIdentityLink } from '#importer/records/generated-events.ts'
import type { SourceFact, SourceRecord } from '#importer/records/import-source.ts'
import {
  type Conversion,
  type ConvertedRecord,
  createSkippedOutcome,
  RecordReject,
} from '#importer/records/imported-event.ts'
import {
  isEmptyValue,
  putPersonUpdates,
  putProperty,
  readEventName,
  readTextField,
} from '#importer/records/record-fields.ts'
import { formatTime, readTime, readTimeField, type TimeWindow } from '#importer/records/source-time.ts'

const identityFact = 'heap_identity'
/** All of Heap's times are UTC, with or without the suffix `UTC`. */
const heapTime = { zone: 'UTC' } as const

interface Lookups {
  readonly window: TimeWindow
  /** The identity of a user; null for a user who was never identified. */
  identityOf(userId: string | null): string | null
}

export const heap = defineSource(
  'heap',
  'tables of Heap Connect or of a one-off export: users, pageviews, user_migrations, one per labelled event',
  (config, context) => {
    const configuredTable = config.text('table')
    const identities = config.texts('identities')
    const lookups: Lookups = {
      window: context,
      identityOf: userId =>
        userId === null ? null : (toLegalId(identities.get(userId)) ?? context.findFact(identityFact, userId)),
    }
    const resolveTable = (record: SourceRecord) => configuredTable ?? findTable(record)
    return {
      convert: record => convertRow(resolveTable(record), record.value, lookups),
      factsOf: record => (resolveTable(record) === 'users' ? readIdentityFacts(record.value) : []),
      timeOf: record =>
        resolveTable(record) === 'users'
          ? readUserTime(record.value, context)
          : readTimeField(record.value, 'time', heapTime, context),
    }
  },
)

function convertRow(table: string | null, row: JsonObject, lookups: Lookups): Conversion {
  switch (table) {
    case null:
      throw new RecordReject('event_missing', 'table', 'neither the file nor the row identifies its table')
    case 'sessions':
      return createSkippedOutcome('session_marker')
    case 'all_events':
      // Skip the row: the same event is also in a table of its own, and has its properties only there.
      return createSkippedOutcome('duplicate_in_source')
    case 'users':
      return convertUser(row, lookups)
    case 'user_migrations':
      return convertMigration(row, lookups)
    default:
      return convertEvent(table, row, lookups)
  }
}

function readIdentityFacts(row: JsonObject): readonly SourceFact[] {
  const userId = readUserId(row)
  const identity = toLegalId(row.identity)
  return userId === null || identity === null ? [] : [{ kind: identityFact, key: userId, value: identity }]
}

/** Converts a row that says that two Heap users are the same person. */
function convertMigration(row: JsonObject, { identityOf, window }: Lookups): Conversion {
  const alias = requireDistinctId(toLegalId(row.from_user_id), 'from_user_id')
  const target = requireDistinctId(toLegalId(row.to_user_id), 'to_user_id')
  const distinctId = identityOf(target) ?? target
  const timeUs = readTimeField(row, 'time', heapTime, window)
  if (!isIdentityLink({ userId: distinctId, deviceId: alias })) return createSkippedOutcome('filtered')
  const uuid = deriveImportUuid('alias', 'heap', distinctId, alias)
  const sourceName = 'user_migrations'
  return { events: [{ uuid, event: '$create_alias', sourceName, distinctId, timeUs, properties: { alias } }] }
}

/** Matches names such as `part-0` of files that contain a part of a table, since such names do not name the table. */
const piece = /^(?:part|file|data|chunk)?[-_]?\d/i

/** @returns the table's own name, without project and schema: `app.heap_main_production.pageviews` is `pageviews`. */
function findTable({ table, value }: SourceRecord): string | null {
  const name = table === null ? '' : table.slice(table.lastIndexOf('.') + 1)
  return name === '' || piece.test(name) ? findTableByColumns(value) : name
}

/** Rows of `pageviews` and of labelled events have the same columns, so only a file name can tell them apart. */
function findTableByColumns(row: JsonObject): string | null {
  if (Object.hasOwn(row, 'from_user_id') && Object.hasOwn(row, 'to_user_id')) return 'user_migrations'
  const isUser = Object.hasOwn(row, 'joindate') || Object.hasOwn(row, 'last_modified')
  return isUser && !Object.hasOwn(row, 'event_id') ? 'users' : null
}

/** Fields that are mapped individually. */
const eventFields = new Set(['event_id', 'user_id', 'session_id', 'time', 'domain', 'query', 'hash'])

/** A page view or a labelled event. */
function convertEvent(table: string, row: JsonObject, lookups: Lookups): ConvertedRecord {
  const userId = toLegalId(row.user_id)
  const distinctId = requireDistinctId(lookups.identityOf(userId) ?? userId)
  const event = table === 'pageviews' ? '$pageview' : readEventName(table, 'table')
  const timeUs = readTimeField(row, 'time', heapTime, lookups.window)
  const eventId = toEventIdText(row.event_id)
  const uuid = eventId === null ? deriveContentUuid('heap', row) : deriveImportUuid('heap', table, eventId)
  return { events: [{ uuid, event, sourceName: table, distinctId, timeUs, properties: mapProperties(row, userId) }] }
}

function mapProperties(row: JsonObject, userId: string | null): JsonObject {
  const properties: JsonObject = {}
  for (const [field, value] of Object.entries(row)) if (!eventFields.has(field)) putField(properties, field, value)
  putPage(properties, row)
  putProperty(properties, '$heap_user_id', userId)
  putProperty(properties, '$heap_session_id', toIdText(row.session_id))
  return properties
}

/** Ignores `landing_page`, which is the first page of the session, not the page of this event. */
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

/** Adds the character that starts a part of a URL, such as `?`, unless the export has written it. */
function addLeadingChar(part: string | null, first: string): string {
  return part === null ? '' : part.startsWith(first) ? part : `${first}${part}`
}

const userFields = new Set(['user_id', 'id', 'identity'])
const dates = new Set(['joindate', 'last_modified', 'lastseen', 'identity_time'])
const initialPrefix = 'initial_'
/** Heap's text for an absent date. */
const noDate = 'Invalid date'

/** The id assigned by Heap; one-off exports call it `id`. */
function readUserId(row: JsonObject): string | null {
  return toLegalId(getOwnValue(row, 'user_id') ?? getOwnValue(row, 'id'))
}

function convertUser(row: JsonObject, { window, identityOf }: Lookups): ConvertedRecord {
  const deviceId = readUserId(row)
  const identity = identityOf(deviceId) ?? toLegalId(row.identity)
  const distinctId = requireDistinctId(identity ?? deviceId)
  const timeUs = readUserTime(row, window)
  const uuid = deriveImportUuid('heap', 'user', deviceId ?? '', formatTime(timeUs))
  const events = [{ uuid, event: '$set', sourceName: 'users', distinctId, timeUs, properties: buildUpdates(row) }]
  return { events, links: createIdentityLinks(identity, deviceId, timeUs) }
}

/** The time at which the values in a user row were valid. @throws RecordReject */
function readUserTime(row: JsonObject, window: TimeWindow): number {
  const field = isDatePresent(row.last_modified) || !isDatePresent(row.joindate) ? 'last_modified' : 'joindate'
  return readTimeField(row, field, heapTime, window)
}

function isDatePresent(value: JsonValue | undefined): boolean {
  return value !== undefined && !isEmptyValue(value) && value !== noDate
}

function buildUpdates(row: JsonObject): JsonObject {
  const set: JsonObject = {}
  const setOnce: JsonObject = {}
  for (const [field, value] of Object.entries(row)) {
    if (userFields.has(field)) continue
    if (field.startsWith(initialPrefix)) putField(setOnce, field.slice(initialPrefix.length), value, toInitialName)
    else if (dates.has(field)) putProperty(set, field, formatDate(value, field))
    else putField(set, field, value)
  }
  const properties: JsonObject = {}
  putPersonUpdates(properties, { set, setOnce })
  return properties
}

/** @returns the date in ISO 8601; null for Heap's text for an absent date. */
function formatDate(value: JsonValue, field: string): string | null {
  if (!isDatePresent(value)) return null
  const timeUs = readTime(value, heapTime, field)
  return timeUs === null ? null : formatTime(timeUs)
}

const names: ReadonlyMap<string, string> = new Map([
  ['browser', '$browser'],
  ['browser_version', '$browser_version'],
  ['device_type', '$device_type'],
  ['library', '$lib'],
  ['ip', '$ip'],
  ['city', '$geoip_city_name'],
  ['country', '$geoip_country_name'],
  ['region', '$geoip_subdivision_1_name'],
  ['referrer', '$referrer'],
  ['path', '$pathname'],
])

/** Sets a property under our name for the field, or under the field's own name if we have none. */
function putField(properties: JsonObject, field: string, value: JsonValue, toName = (name: string) => name): void {
  if (field !== 'platform') {
    putProperty(properties, toName(names.get(field) ?? field), value)
    return
  }
  // `Mac OS X 14.4` is `Mac OS X` and `14.4`; a platform that does not end in a number has no version.
  const [, os, version] = (typeof value === 'string' && /^(.*\S)\s+(\d\S*)$/.exec(value.trim())) || []
  putProperty(properties, toName('$os'), os ?? value)
  putProperty(properties, toName('$os_version'), version)
}

/** Returns the name of our first-touch property that corresponds to a property. */
function toInitialName(name: string): string {
  // In a user row, `landing_page` is the user's first page ever; in an event row, it is the first page of the session.
  if (name === 'landing_page') return '$initial_current_url'
  return `$initial_${name.startsWith('$') ? name.slice(1) : name}`
}
