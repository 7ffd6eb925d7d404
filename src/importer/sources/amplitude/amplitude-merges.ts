// Amplitude's merge files name pairs of Amplitude ids that are one person. The user and device ids come from its events.
// Source: docs/wire/import.md §1.0 (I5), §1.1 (merge file).

import { type JsonObject, ownValue } from '#core/json.ts'
import { rootUuid } from '#importer/records/deterministic-uuid.ts'
import { idText } from '#importer/records/distinct-ids.ts'
import { isLink } from '#importer/records/generated-events.ts'
import type { SourceContext, SourceFact } from '#importer/records/import-source.ts'
import { type Conversion, RecordReject, skipRecord } from '#importer/records/imported-event.ts'
import { readTimeField, type TimeWindow } from '#importer/records/source-time.ts'
import { readAmplitudeId } from './amplitude-values.ts'

export function isMerge(record: JsonObject): boolean {
  return Object.hasOwn(record, 'merged_amplitude_id') && !Object.hasOwn(record, 'event_type')
}

const userFact = 'amplitude_user'
const deviceFact = 'amplitude_device'

/** The user id and the device id of an Amplitude id, under which the staged events know its person. */
export function readUserFacts(record: JsonObject): SourceFact[] {
  const key = idText(ownValue(record, 'amplitude_id'))
  if (key === null) return []
  const facts = [
    { kind: userFact, value: readAmplitudeId(ownValue(record, 'user_id')) },
    { kind: deviceFact, value: readAmplitudeId(ownValue(record, 'device_id')) },
  ]
  return facts.flatMap(({ kind, value }) => (value === null ? [] : [{ kind, key, value }]))
}

/** @throws RecordReject */
export function readMergeTime(record: JsonObject, window: TimeWindow): number {
  return readTimeField(record, 'merge_time', { zone: 'UTC' }, window)
}

interface Known {
  readonly id: string
  readonly isUser: boolean
}

/** @throws RecordReject */
export function convertMerge(record: JsonObject, allowsMerge: boolean, context: SourceContext): Conversion {
  const timeUs = readMergeTime(record, context)
  const original = findKnownId(ownValue(record, 'merged_amplitude_id'), context)
  const added = findKnownId(ownValue(record, 'amplitude_id'), context)
  // An Amplitude id that no staged event has belongs to no person here.
  if (original === null || added === null || !isLink({ userId: original.id, deviceId: added.id }))
    return skipRecord('filtered')
  if (original.isUser && added.isUser) {
    if (!allowsMerge) throw new RecordReject('merge_needs_approval', 'merged_amplitude_id')
    const uuid = rootUuid('merge', 'amplitude', original.id, added.id)
    const properties = { alias: added.id }
    const sourceName = 'merge'
    return { events: [{ uuid, event: '$merge_dangerously', sourceName, distinctId: original.id, timeUs, properties }] }
  }
  const [user, device] = added.isUser ? [added, original] : [original, added]
  return { events: [], links: [{ userId: user.id, deviceId: device.id, timeUs, properties: {} }] }
}

function findKnownId(value: Parameters<typeof idText>[0], { findFact }: SourceContext): Known | null {
  const amplitudeId = idText(value)
  if (amplitudeId === null) return null
  const userId = findFact(userFact, amplitudeId)
  if (userId !== null) return { id: userId, isUser: true }
  const deviceId = findFact(deviceFact, amplitudeId)
  return deviceId === null ? null : { id: deviceId, isUser: false }
}
