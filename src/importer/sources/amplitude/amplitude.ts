// Amplitude: lines of its export, of its hourly files in object storage and of warehouse copies, and rows of its merge
// files. Source: docs/wire/import.md §1.1.

import { parseUuid } from '#core/events/uuid.ts'
import { type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { contentUuid, rootUuid } from '#importer/records/deterministic-uuid.ts'
import { chooseId, eventIdText, idText } from '#importer/records/distinct-ids.ts'
import type { ImportSource, SourceContext, SourceFact } from '#importer/records/import-source.ts'
import {
  type Conversion,
  type ConvertedRecord,
  type IdentityLink,
  type RecordNote,
  RecordReject,
  skipRecord,
} from '#importer/records/imported-event.ts'
import { readEventName } from '#importer/records/record-fields.ts'
import { SourceConfig } from '#importer/records/source-config.ts'
import { readTime } from '#importer/records/source-time.ts'
import { checkTime, type TimeWindow } from '#importer/records/time-window.ts'
import { readGroups } from './amplitude-groups.ts'
import { convertMerge, isMerge, readMergeTime, readUserFacts } from './amplitude-merges.ts'
import { mapProperties, readPersonProperties } from './amplitude-properties.ts'
import { isEmptyInAmplitude, readAmplitudeId } from './amplitude-values.ts'

const name = 'amplitude'

export const amplitude: ImportSource = {
  name,
  summary: 'lines of the export, of the files in object storage or of a warehouse copy, and of merge files',
  prepare(values, context) {
    const config = new SourceConfig(name, values)
    const allowsMerge = config.flag('allow_dangerous_merge')
    config.end()
    return {
      convert: ({ value }) =>
        isMerge(value) ? convertMerge(value, allowsMerge, context) : convertEvent(value, context),
      factsOf: ({ value }): readonly SourceFact[] => (isMerge(value) ? [] : readUserFacts(value)),
      timeOf: ({ value }) => (isMerge(value) ? readMergeTime : readEventTime)(value, context),
    }
  },
}

const eventNames: ReadonlyMap<string, string> = new Map([
  ['[Amplitude] Page Viewed', '$pageview'],
  ['[Amplitude] Element Clicked', '$autocapture'],
  ['[Amplitude] Element Changed', '$autocapture'],
  // Under its own name, the event would be an identification without an anonymous id.
  ['$identify', '$set'],
])
const sessionMarkers: ReadonlySet<string> = new Set(['session_start', 'session_end'])
/** Describes a group and is no event of a person. */
const groupCall = '$groupidentify'

function convertEvent(record: JsonObject, context: SourceContext): Conversion {
  const sourceName = readEventName(ownValue(record, 'event_type'), 'event_type')
  if (sessionMarkers.has(sourceName)) return skipRecord('session_marker')
  const userId = readAmplitudeId(ownValue(record, 'user_id'))
  const deviceId = readAmplitudeId(ownValue(record, 'device_id'))
  const distinctId = chooseDistinctId(userId ?? deviceId, record)
  const timeUs = readEventTime(record, context)
  const { inEvent, snapshots, droppedCount } = readGroups(record, distinctId, timeUs)
  const notes: RecordNote[] = Array.from({ length: droppedCount }, () => 'group_values_dropped')
  if (userId === null && deviceId === null) notes.push('amplitude_id_used')
  const generated = { links: createLinks(userId, deviceId, timeUs), groups: snapshots }
  if (sourceName === groupCall) return { ...generated, events: [], notes }
  const properties = mapProperties(record, sourceName, { userId, deviceId })
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

/** @throws RecordReject */
function chooseDistinctId(known: string | null, record: JsonObject): string {
  const value = known ?? readAmplitudeId(ownValue(record, 'amplitude_id')) ?? undefined
  return chooseId([{ value, field: 'amplitude_id' }], 'distinct_id')
}

const timeFields = ['event_time', 'client_event_time', 'server_received_time']

/** The first readable time; later fields are less exact. @throws RecordReject */
function readEventTime(record: JsonObject, window: TimeWindow): number {
  let firstWritten: string | null = null
  for (const field of timeFields) {
    const value = ownValue(record, field)
    if (value === undefined || isEmptyInAmplitude(value)) continue
    firstWritten ??= field
    const timeUs = readTime(value, { zone: 'UTC' }, field)
    if (timeUs === null) continue
    checkTime(timeUs, window, field)
    return timeUs
  }
  throw new RecordReject(
    firstWritten === null ? 'timestamp_missing' : 'timestamp_invalid',
    firstWritten ?? timeFields[0]!,
  )
}

function deriveUuid(record: JsonObject): string {
  const readIdText = (field: string) => idText(ownValue(record, field)) ?? ''
  const own = parseUuid(readIdText('uuid'))
  if (own !== null) return own
  const insertId = ownValue(record, '$insert_id')
  const idOfEvent = isEmptyInAmplitude(insertId) ? null : eventIdText(insertId)
  if (idOfEvent === null) return contentUuid(name, record)
  return rootUuid(name, 'insert', readIdText('app'), readIdText('device_id'), idOfEvent)
}

function createLinks(userId: string | null, deviceId: string | null, timeUs: number): IdentityLink[] {
  if (userId === null || deviceId === null) return []
  return [{ userId, deviceId, timeUs, properties: { $amplitude_user_id: userId, $amplitude_device_id: deviceId } }]
}

const notKept = [
  'app',
  'amplitude_id',
  '$insert_id',
  'platform',
  'client_upload_time',
  'server_upload_time',
  'processed_time',
]

/** An `$insert_id` that the uuid is derived from does not count as dropped. */
function listDroppedFields(record: JsonObject): string[] {
  const isUsedByUuid = (field: string) =>
    field === '$insert_id' && parseUuid(idText(ownValue(record, 'uuid')) ?? '') === null
  return notKept.filter(field => !isUsedByUuid(field) && !isEmptyInAmplitude(ownValue(record, field) as JsonValue))
}
