// Amplitude: lines of its export, of its hourly files in object storage and of warehouse copies, and rows of its merge
// files. Source: docs/wire/import.md §1.1.

import { parseUuid } from '#core/events/uuid.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { requireDistinctId, toEventIdText, toIdText } from '#importer/records/distinct-ids.ts'
import { createIdentityLinks, isIdentityLink } from '#importer/records/generated-events.ts'
import type { SourceContext, SourceFact } from '#importer/records/import-source.ts'
import {
  type Conversion,
  type ConvertedRecord,
  createSkippedOutcome,
  type GroupSnapshot,
  type RecordNote,
  RecordReject,
} from '#importer/records/imported-event.ts'
import { readEventName } from '#importer/records/record-fields.ts'
import { checkTimeInWindow, findFirstTime, readTimeField, type TimeWindow } from '#importer/records/source-time.ts'
import { mapAmplitudeProperties, readPersonProperties } from './amplitude-properties.ts'
import { isEmptyInAmplitude, readAmplitudeId, readAmplitudeObject, removeEmptyValues } from './amplitude-values.ts'

export const amplitude = defineSource(
  'amplitude',
  'lines of the export, of the files in object storage or of a warehouse copy, and of merge files',
  (config, context) => {
    const allowsMerge = config.flag('allow_dangerous_merge')
    return {
      convert: ({ value }) =>
        isMerge(value) ? convertMerge(value, allowsMerge, context) : convertEvent(value, context),
      factsOf: ({ value }) => (isMerge(value) ? [] : readUserFacts(value)),
      timeOf: ({ value }) => (isMerge(value) ? readMergeTime : readEventTime)(value, context),
    }
  },
)

const eventNames: ReadonlyMap<string, string> = new Map([
  ['[Amplitude] Page Viewed', '$pageview'],
  ['[Amplitude] Element Clicked', '$autocapture'],
  ['[Amplitude] Element Changed', '$autocapture'],
  // Renamed: as `$identify`, the event would be an identification without an anonymous id.
  ['$identify', '$set'],
])
const sessionMarkers: ReadonlySet<string> = new Set(['session_start', 'session_end'])
/** This event describes a group, and is not an event of a person. */
const groupCall = '$groupidentify'

function convertEvent(record: JsonObject, context: SourceContext): Conversion {
  const sourceName = readEventName(getOwnValue(record, 'event_type'), 'event_type')
  if (sessionMarkers.has(sourceName)) return createSkippedOutcome('session_marker')
  const userId = readAmplitudeId(getOwnValue(record, 'user_id'))
  const deviceId = readAmplitudeId(getOwnValue(record, 'device_id'))
  const distinctId = requireDistinctId(userId ?? deviceId ?? readAmplitudeId(getOwnValue(record, 'amplitude_id')))
  const timeUs = readEventTime(record, context)
  const { inEvent, snapshots, droppedCount } = readGroups(record, distinctId, timeUs)
  const notes: RecordNote[] = Array.from({ length: droppedCount }, () => 'group_values_dropped')
  if (userId === null && deviceId === null) notes.push('amplitude_id_used')
  const linked = { $amplitude_user_id: userId, $amplitude_device_id: deviceId }
  const generated = { links: createIdentityLinks(userId, deviceId, timeUs, linked), groups: snapshots }
  if (sourceName === groupCall) return { ...generated, events: [], notes }
  const properties = mapAmplitudeProperties(record, sourceName, { userId, deviceId })
  if (Object.keys(inEvent).length > 0) properties.$groups = inEvent
  const event = eventNames.get(sourceName) ?? sourceName
  const converted: ConvertedRecord = {
    ...generated,
    events: [{ uuid: deriveUuid(record), event, sourceName, distinctId, timeUs, properties }],
    notes,
    dropped: listDroppedFields(record),
  }
  const person = readPersonProperties(record)
  return Object.keys(person).length === 0 ? converted : { ...converted, person: { distinctId, properties: person } }
}

/** The first readable time among fields that are listed from most to least exact. @throws RecordReject */
function readEventTime(record: JsonObject, window: TimeWindow): number {
  const { timeUs, field } = findFirstTime(record, timeFields, { zone: 'UTC' }, isEmptyInAmplitude)
  checkTimeInWindow(timeUs, window, field)
  return timeUs
}

const timeFields = ['event_time', 'client_event_time', 'server_received_time']

function deriveUuid(record: JsonObject): string {
  const readIdText = (field: string) => toIdText(getOwnValue(record, field)) ?? ''
  const own = parseUuid(readIdText('uuid'))
  if (own !== null) return own
  const insertId = getOwnValue(record, '$insert_id')
  const idOfEvent = isEmptyInAmplitude(insertId) ? null : toEventIdText(insertId)
  if (idOfEvent === null) return deriveContentUuid('amplitude', record)
  return deriveImportUuid('amplitude', 'insert', readIdText('app'), readIdText('device_id'), idOfEvent)
}

const notKept = [
  ...['app', 'amplitude_id', '$insert_id', 'platform', 'client_upload_time', 'server_upload_time', 'processed_time'],
]

/** Lists fields that no event carries. An `$insert_id` that the uuid is derived from does not count as dropped. */
function listDroppedFields(record: JsonObject): string[] {
  const isUsedByUuid = (field: string) =>
    field === '$insert_id' && parseUuid(toIdText(getOwnValue(record, 'uuid')) ?? '') === null
  return notKept.filter(field => !isUsedByUuid(field) && !isEmptyInAmplitude(getOwnValue(record, field)))
}

interface RecordGroups {
  /** The first key of each group type, since an event can have only one key per type. */
  readonly inEvent: JsonObject
  /** Every group key, in the record's order. */
  readonly snapshots: readonly GroupSnapshot[]
  /** How many keys `inEvent` lacks, since they are not the first of their group type. */
  readonly droppedCount: number
}

/** @throws RecordReject */
function readGroups(record: JsonObject, distinctId: string, timeUs: number): RecordGroups {
  const groups = readAmplitudeObject(record, 'groups')
  const described = readAmplitudeObject(record, 'group_properties')
  const inEvent: JsonObject = {}
  const snapshots: GroupSnapshot[] = []
  let droppedCount = 0
  for (const type of listKeysOfBoth(groups, described)) {
    const named = readKeys(getOwnValue(groups, type))
    const ofType = getOwnValue(described, type)
    const byKey = isJsonObject(ofType) ? ofType : {}
    if (named.length > 0) setOwnValue(inEvent, type, named[0]!)
    droppedCount += Math.max(0, named.length - 1)
    for (const key of new Set([...named, ...Object.keys(byKey).filter(each => !isEmptyInAmplitude(each))])) {
      const properties = getOwnValue(byKey, key)
      snapshots.push({
        type,
        key,
        properties: isJsonObject(properties) ? removeEmptyValues(properties) : null,
        distinctId,
        timeUs,
      })
    }
  }
  return { inEvent, snapshots, droppedCount }
}

function listKeysOfBoth(a: JsonObject, b: JsonObject): Iterable<string> {
  const [keysOfA, keysOfB] = [Object.keys(a), Object.keys(b)]
  // Fast path: most records have no groups at all.
  return keysOfB.length === 0 ? keysOfA : new Set([...keysOfA, ...keysOfB])
}

/** Texts that are illegal as ids of persons, such as 0 or guest, are valid keys of groups. */
function readKeys(value: JsonValue | undefined): string[] {
  const list = Array.isArray(value) ? value : [value]
  return [...new Set(list.map(key => (isEmptyInAmplitude(key) ? null : toIdText(key))).filter(key => key !== null))]
}

// Merge files name pairs of Amplitude ids that are one person. The user and device ids of such a person come from the
// staged events. Source: docs/wire/import.md §1.0 (I5), §1.1 (merge file).

function isMerge(record: JsonObject): boolean {
  return Object.hasOwn(record, 'merged_amplitude_id') && !Object.hasOwn(record, 'event_type')
}

const userFact = 'amplitude_user'
const deviceFact = 'amplitude_device'

/** For an Amplitude id: the user id and the device id by which the staged events name its person. */
function readUserFacts(record: JsonObject): SourceFact[] {
  const key = toIdText(getOwnValue(record, 'amplitude_id'))
  if (key === null) return []
  const facts = [
    { kind: userFact, value: readAmplitudeId(getOwnValue(record, 'user_id')) },
    { kind: deviceFact, value: readAmplitudeId(getOwnValue(record, 'device_id')) },
  ]
  return facts.flatMap(({ kind, value }) => (value === null ? [] : [{ kind, key, value }]))
}

/** @throws RecordReject */
function readMergeTime(record: JsonObject, window: TimeWindow): number {
  return readTimeField(record, 'merge_time', { zone: 'UTC' }, window)
}

interface Known {
  readonly id: string
  readonly isUser: boolean
}

/** @throws RecordReject */
function convertMerge(record: JsonObject, allowsMerge: boolean, context: SourceContext): Conversion {
  const timeUs = readMergeTime(record, context)
  const original = findKnownId(getOwnValue(record, 'merged_amplitude_id'), context)
  const added = findKnownId(getOwnValue(record, 'amplitude_id'), context)
  // If no staged event has one of the Amplitude ids, there is no person to merge.
  if (original === null || added === null || !isIdentityLink({ userId: original.id, deviceId: added.id }))
    return createSkippedOutcome('filtered')
  if (original.isUser && added.isUser) {
    if (!allowsMerge) throw new RecordReject('merge_needs_approval', 'merged_amplitude_id')
    const uuid = deriveImportUuid('merge', 'amplitude', original.id, added.id)
    const properties = { alias: added.id }
    const sourceName = 'merge'
    return { events: [{ uuid, event: '$merge_dangerously', sourceName, distinctId: original.id, timeUs, properties }] }
  }
  const [user, device] = added.isUser ? [added, original] : [original, added]
  return { events: [], links: [{ userId: user.id, deviceId: device.id, timeUs, properties: {} }] }
}

function findKnownId(value: JsonValue | undefined, { findFact }: SourceContext): Known | null {
  const amplitudeId = toIdText(value)
  if (amplitudeId === null) return null
  const userId = findFact(userFact, amplitudeId)
  if (userId !== null) return { id: userId, isUser: true }
  const deviceId = findFact(deviceFact, amplitudeId)
  return deviceId === null ? null : { id: deviceId, isUser: false }
}
