// Amplitude: lines of its export, of its hourly files in object storage and of warehouse copies, and rows of its merge
// files. Source: docs/wire/import.md §1.1.

import { parseUuid } from '#core/events/uuid.ts'
import { type JsonObject, ownValue } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { contentUuid, rootUuid } from '#importer/records/deterministic-uuid.ts'
import { eventIdText, idText, requireDistinctId } from '#importer/records/distinct-ids.ts'
import { createLinks } from '#importer/records/generated-events.ts'
import type { SourceContext } from '#importer/records/import-source.ts'
import { type Conversion, type ConvertedRecord, type RecordNote, skipRecord } from '#importer/records/imported-event.ts'
import { readEventName } from '#importer/records/record-fields.ts'
import { checkTime, findFirstTime, type TimeWindow } from '#importer/records/source-time.ts'
import { readGroups } from './amplitude-groups.ts'
import { convertMerge, isMerge, readMergeTime, readUserFacts } from './amplitude-merges.ts'
import { mapProperties, readPersonProperties } from './amplitude-properties.ts'
import { isEmptyInAmplitude, readAmplitudeId } from './amplitude-values.ts'

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
  const distinctId = requireDistinctId(userId ?? deviceId ?? readAmplitudeId(ownValue(record, 'amplitude_id')))
  const timeUs = readEventTime(record, context)
  const { inEvent, snapshots, droppedCount } = readGroups(record, distinctId, timeUs)
  const notes: RecordNote[] = Array.from({ length: droppedCount }, () => 'group_values_dropped')
  if (userId === null && deviceId === null) notes.push('amplitude_id_used')
  const linked = { $amplitude_user_id: userId, $amplitude_device_id: deviceId }
  const generated = { links: createLinks(userId, deviceId, timeUs, linked), groups: snapshots }
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

/** The first readable time; later fields are less exact. @throws RecordReject */
function readEventTime(record: JsonObject, window: TimeWindow): number {
  const { timeUs, field } = findFirstTime(record, timeFields, { zone: 'UTC' }, isEmptyInAmplitude)
  checkTime(timeUs, window, field)
  return timeUs
}

const timeFields = ['event_time', 'client_event_time', 'server_received_time']

function deriveUuid(record: JsonObject): string {
  const readIdText = (field: string) => idText(ownValue(record, field)) ?? ''
  const own = parseUuid(readIdText('uuid'))
  if (own !== null) return own
  const insertId = ownValue(record, '$insert_id')
  const idOfEvent = isEmptyInAmplitude(insertId) ? null : eventIdText(insertId)
  if (idOfEvent === null) return contentUuid('amplitude', record)
  return rootUuid('amplitude', 'insert', readIdText('app'), readIdText('device_id'), idOfEvent)
}

const notKept = [
  ...['app', 'amplitude_id', '$insert_id', 'platform', 'client_upload_time', 'server_upload_time', 'processed_time'],
]

/** An `$insert_id` that the uuid is derived from does not count as dropped. */
function listDroppedFields(record: JsonObject): string[] {
  const isUsedByUuid = (field: string) =>
    field === '$insert_id' && parseUuid(idText(ownValue(record, 'uuid')) ?? '') === null
  return notKept.filter(field => !isUsedByUuid(field) && !isEmptyInAmplitude(ownValue(record, field)))
}
