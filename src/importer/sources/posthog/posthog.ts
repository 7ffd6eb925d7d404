// PostHog: events from batch exports and downloads (JSONL, Parquet) or from another instance, carried over unchanged.
// Source: docs/wire/import.md §1.8, §3.7.

import { parseUuid } from '#core/events/uuid.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { isIllegalId, requireDistinctId, toEventIdText, toIdText, toLegalId } from '#importer/records/distinct-ids.ts'
import type { SourceContext, SourceFact, SourceRecord } from '#importer/records/import-source.ts'
import {
  type Conversion,
  createSkippedOutcome,
  type RecordNote,
  RecordReject,
} from '#importer/records/imported-event.ts'
import { isEmptyValue, parseJsonText, readEventName, readTextField } from '#importer/records/record-fields.ts'
import { readTimeField, type TimeWindow } from '#importer/records/source-time.ts'

/** Data of session recordings and of the client itself, which are not events of a person. */
const unsupportedEvents = new Set(['$snapshot', '$snapshot_items', '$$heatmap', '$$client_ingestion_warning'])
/** Fields that the event itself is made of. */
const ownFields = new Set(['uuid', 'event', 'distinct_id', 'timestamp', 'properties', 'elements_chain'])
/**
 * Metadata of the export. `set` and `set_once` repeat values in `properties`; `sent_at` and `offset` would correct the time
 * a second time.
 */
const bookkeepingFields = new Set(
  `person_id person_properties person_mode created_at inserted_at _inserted_at team_id project_id set set_once elements
   sent_at offset`.split(/\s+/),
)
/** Columns that identify an export of Pennon's own events: no other product writes both. */
const pennonColumns = ['cursor', 'lane']
/** All metadata columns of a Pennon export; in any other export, columns with these names are properties. */
const pennonFields = new Set([...pennonColumns, 'captured_at', 'import_job_id', 'person_created_at'])
const personUpdates = ['$set', '$set_once', '$unset']

interface PostHogOptions {
  readonly stripPersonUpdates: boolean
  readonly promoteGroups: boolean
  readonly allowsMerges: boolean
  readonly window: TimeWindow
}

export const posthog = defineSource(
  'posthog',
  'batch exports and downloads of PostHog (JSONL, Parquet)',
  (config, context) => {
    const options: PostHogOptions = {
      stripPersonUpdates: config.flag('strip_person_updates'),
      promoteGroups: config.flag('promote_groups'),
      allowsMerges: config.flag('allow_dangerous_merge'),
      window: context,
    }
    const table = config.text('table')
    return {
      convert: record =>
        isPersonRow(record, table)
          ? convertPersonRow(record, options, context.findFact)
          : convertEvent(record, options),
      factsOf: record => (isPersonRow(record, table) ? readPersonRowFacts(record, context.findFact) : []),
      timeOf: record => (isPersonRow(record, table) ? readPersonRowTime : readEventTime)(record.value, context),
    }
  },
)

function convertEvent({ value: record }: SourceRecord, options: PostHogOptions): Conversion {
  const name = readEventName(getOwnValue(record, 'event'), 'event')
  if (unsupportedEvents.has(name)) throw new RecordReject('unsupported_event', 'event')
  const given = readProperties(record)
  const distinctId = requireDistinctId(
    toLegalId(getOwnValue(record, 'distinct_id')) ?? toLegalId(getOwnValue(given, 'distinct_id')),
  )
  const timeUs = readEventTime(record, options.window)
  const notes: RecordNote[] = []
  const uuid = readOrDeriveUuid(record, notes)
  const properties = selectKeptProperties(given, options, notes)
  const stripped = options.stripPersonUpdates
    ? [...listStrippedFields(given, 'properties.'), ...listStrippedFields(record, '')]
    : []
  if (stripped.length > 0) notes.push('person_data_left_out')
  const chain = readTextField(record, 'elements_chain')
  if (chain !== null) properties.$elements_chain = chain
  const isOfPennon = pennonColumns.every(column => typeof getOwnValue(record, column) === 'string')
  const isBookkeeping = (key: string) => bookkeepingFields.has(key) || (isOfPennon && pennonFields.has(key))
  for (const [key, value] of Object.entries(record)) {
    const isOwn = ownFields.has(key) || isBookkeeping(key) || Object.hasOwn(properties, key)
    if (!isOwn && !isStripped(key, options) && !isEmptyValue(value)) setOwnValue(properties, key, value)
  }
  // Both event names mean the same, but the service stores only `$groupidentify`.
  const event = name === '$group_identify' ? '$groupidentify' : name
  const dropped = [...Object.keys(record).filter(isBookkeeping), ...stripped]
  return { events: [{ uuid, event, sourceName: name, distinctId, timeUs, properties }], notes, dropped }
}

/** @throws RecordReject */
function readEventTime(record: JsonObject, window: TimeWindow): number {
  return readTimeField(record, 'timestamp', { zone: 'UTC' }, window)
}

/** The properties as an object; Parquet and ClickHouse store them as text. */
function readProperties(record: JsonObject): JsonObject {
  const written = getOwnValue(record, 'properties') ?? ''
  if (written === '') return {}
  const value = typeof written === 'string' ? parseJsonText(written) : written
  if (value === null) return {}
  if (!isJsonObject(value)) throw new RecordReject('properties_not_object', 'properties')
  return value
}

function selectKeptProperties(given: JsonObject, options: PostHogOptions, notes: RecordNote[]): JsonObject {
  const promotes = Object.hasOwn(given, 'groups') && !Object.hasOwn(given, '$groups')
  if (promotes && !options.promoteGroups) notes.push('groups_without_dollar')
  const kept: JsonObject = {}
  for (const [key, value] of Object.entries(given)) {
    if (key === 'distinct_id' || key === '$sent_at') continue
    if (isStripped(key, options)) continue
    setOwnValue(kept, key === 'groups' && promotes && options.promoteGroups ? '$groups' : key, value)
  }
  return kept
}

/** The paths of all person properties that the stripped fields would have set or unset. @param path prefix of `given`. */
function listStrippedFields(given: JsonObject, path: string): string[] {
  return personUpdates.flatMap(key => {
    const value = getOwnValue(given, key)
    const names = Array.isArray(value) ? value : isJsonObject(value) ? Object.keys(value) : []
    return names.map(name => `${path}${key}.${String(name)}`)
  })
}

function isStripped(key: string, { stripPersonUpdates }: PostHogOptions): boolean {
  return stripPersonUpdates && personUpdates.includes(key)
}

function readOrDeriveUuid(record: JsonObject, notes: RecordNote[]): string {
  const written = toEventIdText(getOwnValue(record, 'uuid'))
  if (written === null) return deriveContentUuid('posthog', record)
  const uuid = parseUuid(written)
  if (uuid === null) notes.push('invalid_uuid')
  return uuid ?? deriveImportUuid('posthog', 'uuid', written)
}

// Rows of the persons export, each with one id of one person. Only this export shows merges made through an API.

/** @param table the table of all records; null takes it from each record's file. */
function isPersonRow({ value, table: ofFile }: SourceRecord, table: string | null): boolean {
  if (Object.hasOwn(value, 'event')) return false
  return Object.hasOwn(value, 'person_distinct_id_version') || /^persons?\b|distinct_id/.test(table ?? ofFile ?? '')
}

/** @throws RecordReject */
function readPersonRowTime(row: JsonObject, window: TimeWindow): number {
  const field = readTextField(row, 'timestamp') === null ? 'created_at' : 'timestamp'
  return readTimeField(row, field, { zone: 'UTC' }, window)
}

type FindFact = SourceContext['findFact']

/**
 * Kinds of facts that hold the ids of a person as a linked list, in the order in which they were read: the first id, the
 * last id, and the next id after each id.
 */
const [firstKind, lastKind, nextKind] = ['person', 'person_last', 'person_next'] as const
/** The kind of fact with an id's highest row version and the person in that row, if the id was not deleted. */
const ownerKind = 'person_of_id'

/** Ids can move between persons, and tables also contain replaced rows, so the highest version counts. */
function readPersonRowFacts({ value }: SourceRecord, findFact: FindFact): SourceFact[] {
  const personId = readTextField(value, 'person_id')
  const distinctId = toIdText(getOwnValue(value, 'distinct_id'))
  if (personId === null || distinctId === null || isIllegalId(distinctId)) return []
  const version = readVersion(value)
  const isDeleted = isTrue(getOwnValue(value, 'is_deleted'))
  const owner = findOwner(distinctId, findFact)
  const facts: SourceFact[] = []
  if (version !== null && (owner === null || version >= owner.version))
    facts.push({ kind: ownerKind, key: distinctId, value: `${version} ${isDeleted ? '' : personId}` })
  const isListed = findFact(nextKind, formatNextKey(personId, distinctId)) !== null
  if (isDeleted || isListed) return facts
  const last = findFact(lastKind, personId)
  facts.push({ kind: lastKind, key: personId, value: distinctId })
  facts.push({ kind: nextKind, key: formatNextKey(personId, distinctId), value: '' })
  if (last === null) facts.push({ kind: firstKind, key: personId, value: distinctId })
  else facts.push({ kind: nextKind, key: formatNextKey(personId, last), value: distinctId })
  return facts
}

/** @throws RecordReject */
function convertPersonRow(
  record: SourceRecord,
  { allowsMerges, window }: PostHogOptions,
  findFact: FindFact,
): Conversion {
  const { value } = record
  const alias = requireDistinctId(toLegalId(getOwnValue(value, 'distinct_id')))
  const personId = readTextField(value, 'person_id') ?? ''
  if (isTrue(getOwnValue(value, 'is_deleted')) || !belongsTo(alias, personId, findFact))
    return createSkippedOutcome('filtered')
  const distinctId = findMergeTarget(personId, findFact)
  if (distinctId === null || distinctId === alias) return createSkippedOutcome('filtered')
  if (!allowsMerges) throw new RecordReject('merge_needs_approval', 'distinct_id')
  const timeUs = readPersonRowTime(value, window)
  const uuid = deriveImportUuid('merge', 'posthog', distinctId, alias)
  return {
    events: [{ uuid, event: '$merge_dangerously', sourceName: 'persons', distinctId, timeUs, properties: { alias } }],
  }
}

/** The id into which all other ids of the person are merged: the first id that still belongs to the person. */
function findMergeTarget(personId: string, findFact: FindFact): string | null {
  let id = findFact(firstKind, personId) ?? ''
  while (id !== '' && !belongsTo(id, personId, findFact)) id = findFact(nextKind, formatNextKey(personId, id)) ?? ''
  return id === '' ? null : id
}

function belongsTo(distinctId: string, personId: string, findFact: FindFact): boolean {
  const owner = findOwner(distinctId, findFact)
  return owner === null || owner.personId === personId
}

/** @returns null for an id whose rows have no version: then all its rows count. */
function findOwner(distinctId: string, findFact: FindFact): { version: number; personId: string } | null {
  const fact = findFact(ownerKind, distinctId)
  if (fact === null) return null
  const end = fact.indexOf(' ')
  return { version: Number(fact.slice(0, end)), personId: fact.slice(end + 1) }
}

function formatNextKey(personId: string, distinctId: string): string {
  return JSON.stringify([personId, distinctId])
}

function readVersion(row: JsonObject): number | null {
  const text = toIdText(getOwnValue(row, 'person_distinct_id_version') ?? getOwnValue(row, 'version'))
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null
}

/** ClickHouse writes booleans as 0 and 1. */
function isTrue(value: JsonValue | undefined): boolean {
  return ['true', '1'].includes(toIdText(value)?.toLowerCase() ?? String(value))
}
