// Matomo: visits as returned by `Live.getLastVisitsDetails`. A visit is one record, and each of its actions an event.
// Source: docs/wire/import.md §1.6.

import { isJsonObject, type JsonObject, mergeObjects, ownValue } from '#core/json.ts'
import { minOf } from '#core/min-max.ts'
import { sessionUuid } from '#importer/records/deterministic-uuid.ts'
import { chooseId, idText, legalId } from '#importer/records/distinct-ids.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import { type Conversion, type ImportedEvent, RecordReject, skipRecord } from '#importer/records/imported-event.ts'
import { putProperty } from '#importer/records/record-fields.ts'
import { SourceConfig } from '#importer/records/source-config.ts'
import { usPerMs } from '#importer/records/source-time.ts'
import { checkTime, type TimeWindow } from '#importer/records/time-window.ts'
import {
  isKnownMatomoType,
  type MatomoAction,
  mapMatomoActionProperties,
  readMatomoEventName,
} from './matomo-actions.ts'
import { listDroppedMatomoFields } from './matomo-display.ts'
import { findMatomoTimes, readMatomoStart } from './matomo-times.ts'
import { deriveMatomoUuid } from './matomo-uuids.ts'
import { mapMatomoVisitProperties } from './matomo-visits.ts'

/** Every visit has these. A record with none of them is not a visit, but for example a response that wraps visits. */
const visitFields = ['actionDetails', 'idVisit', 'visitorId']

export const matomo: ImportSource = {
  name: 'matomo',
  summary: 'visits of Matomo, as Live.getLastVisitsDetails gives them',
  prepare(config, window) {
    const keys = new SourceConfig('matomo', config)
    // Only for visits without start and end times, which otherwise reveal the zone of their actions.
    const zone = keys.zone()
    keys.end()
    return {
      convert: ({ value }) => convertVisit(value, zone, window),
      timeOf: ({ value }) => readVisitTime(value, zone, window),
    }
  },
}

function convertVisit(visit: JsonObject, zone: string | null, window: TimeWindow): Conversion {
  if (!visitFields.some(field => Object.hasOwn(visit, field)))
    throw new RecordReject('event_missing', 'actionDetails', 'the record is not a visit')
  const all = listActions(visit)
  if (all.length === 0) return skipRecord('visit_without_actions')
  const [actions, goals] = [all.filter(isOwnEvent), all.filter(action => !isOwnEvent(action))]
  if (actions.length === 0) return skipRecord('goal_conversion_duplicate')
  const candidates = ['userId', 'visitorId'].map(field => ({ value: ownValue(visit, field), field }))
  const distinctId = chooseId(candidates, 'distinct_id')
  const times = findMatomoTimes(visit, all, actions, zone, window)
  const firstUs = minOf(times.values())
  const sharedProperties = createVisitProperties(visit, readMatomoStart(visit) ?? firstUs)
  const events = actions.map(
    (action): ImportedEvent => ({
      uuid: deriveMatomoUuid(visit, action),
      event: readMatomoEventName(action),
      sourceName: action.type,
      distinctId,
      timeUs: times.get(action)!,
      properties: mergeObjects(sharedProperties, mapMatomoActionProperties(action)),
    }),
  )
  const [userId, deviceId] = [legalId(visit.userId), legalId(visit.visitorId)]
  const unknown = actions.filter(({ type }) => !isKnownMatomoType(type))
  return {
    events,
    links: userId === null || deviceId === null ? [] : [{ userId, deviceId, timeUs: firstUs, properties: {} }],
    dropped: listDroppedMatomoFields(
      visit,
      actions.map(({ value }) => value),
      goals.map(({ value }) => value),
    ),
    notes: [...unknown.map(({ type }) => `matomo_type_unknown:${type}`), ...goals.map(() => 'matomo_goal_left_out')],
  }
}

/** The time of the first action with an event; the start of a visit without any, or null if it has none. */
function readVisitTime(visit: JsonObject, zone: string | null, window: TimeWindow): number | null {
  const all = listActions(visit)
  const actions = all.filter(isOwnEvent)
  if (actions.length > 0) return minOf(findMatomoTimes(visit, all, actions, zone, window).values())
  const startUs = readMatomoStart(visit)
  if (startUs !== null) checkTime(startUs, window, 'firstActionTimestamp')
  return startUs
}

/** A goal is always reached by another action, which has its own event. */
function isOwnEvent({ type }: MatomoAction): boolean {
  return type !== 'goal'
}

/** Accepts lists and objects, since PHP writes a list with gaps as an object. */
function listActions(visit: JsonObject): readonly MatomoAction[] {
  const details = ownValue(visit, 'actionDetails')
  const list = Array.isArray(details) ? details : isJsonObject(details) ? Object.values(details) : []
  const seen = new Map<string, number>()
  return list.map((value, index) => {
    const path = `actionDetails[${index}]`
    if (!isJsonObject(value)) throw new RecordReject('properties_not_object', path)
    const type = idText(ownValue(value, 'type')) ?? ''
    if (type === '') throw new RecordReject('event_missing', `${path}.type`)
    const position = (seen.get(type) ?? 0) + 1
    seen.set(type, position)
    return { type, position, path, value }
  })
}

function createVisitProperties(visit: JsonObject, startUs: number): JsonObject {
  const properties = mapMatomoVisitProperties(visit)
  const visitId = idText(visit.idVisit)
  if (visitId === null) return properties
  const startMs = Math.floor(startUs / usPerMs)
  putProperty(properties, '$session_id', sessionUuid(startMs, 'matomo', 'session', idText(visit.idSite) ?? '', visitId))
  return properties
}
