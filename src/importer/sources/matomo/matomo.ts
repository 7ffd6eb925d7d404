// Matomo: visits as returned by `Live.getLastVisitsDetails`. A visit is one record, and each of its actions an event.
// Source: docs/wire/import.md §1.6.

import { getOwnValue, isJsonObject, type JsonObject, mergeObjects } from '#core/json.ts'
import { minOf } from '#core/min-max.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid, deriveSessionUuid } from '#importer/records/deterministic-uuid.ts'
import { requireDistinctId, toIdText, toLegalId } from '#importer/records/distinct-ids.ts'
import { createIdentityLinks } from '#importer/records/generated-events.ts'
import {
  type Conversion,
  createSkippedOutcome,
  type ImportedEvent,
  RecordReject,
} from '#importer/records/imported-event.ts'
import { putProperty } from '#importer/records/record-fields.ts'
import { checkTimeInWindow, type TimeWindow, usPerMs } from '#importer/records/source-time.ts'
import {
  isKnownMatomoType,
  listDroppedMatomoFields,
  type MatomoAction,
  mapMatomoActionProperties,
  mapMatomoVisitProperties,
  readMatomoEventName,
} from './matomo-properties.ts'
import { findMatomoTimes, readMatomoStart } from './matomo-times.ts'

/** Every visit has these. A record with none of them is not a visit, but for example a response that wraps visits. */
const visitFields = ['actionDetails', 'idVisit', 'visitorId']

export const matomo = defineSource(
  'matomo',
  'visits of Matomo, as Live.getLastVisitsDetails gives them',
  (config, window) => {
    // The zone is only used for visits without start and end times, since these times reveal the zone of the actions.
    const zone = config.zone()
    return {
      convert: ({ value }) => convertVisit(value, zone, window),
      timeOf: ({ value }) => readVisitTime(value, zone, window),
    }
  },
)

function convertVisit(visit: JsonObject, zone: string | null, window: TimeWindow): Conversion {
  if (!visitFields.some(field => Object.hasOwn(visit, field)))
    throw new RecordReject('event_missing', 'actionDetails', 'the record is not a visit')
  const all = listActions(visit)
  if (all.length === 0) return createSkippedOutcome('visit_without_actions')
  const [actions, goals] = [all.filter(isSeparateEvent), all.filter(action => !isSeparateEvent(action))]
  if (actions.length === 0) return createSkippedOutcome('goal_conversion_duplicate')
  const [userId, deviceId] = [toLegalId(visit.userId), toLegalId(visit.visitorId)]
  const distinctId = requireDistinctId(userId ?? deviceId)
  const times = findMatomoTimes(visit, all, actions, zone, window)
  const firstUs = minOf(times.values())
  const sharedProperties = createVisitProperties(visit, readMatomoStart(visit) ?? firstUs)
  const events = actions.map(
    (action): ImportedEvent => ({
      uuid: deriveUuid(visit, action),
      event: readMatomoEventName(action),
      sourceName: action.type,
      distinctId,
      timeUs: times.get(action)!,
      properties: mergeObjects(sharedProperties, mapMatomoActionProperties(action)),
    }),
  )
  const unknown = actions.filter(({ type }) => !isKnownMatomoType(type))
  return {
    events,
    links: createIdentityLinks(userId, deviceId, firstUs),
    dropped: listDroppedMatomoFields(
      visit,
      actions.map(({ value }) => value),
      goals.map(({ value }) => value),
    ),
    notes: [...unknown.map(({ type }) => `matomo_type_unknown:${type}`), ...goals.map(() => 'matomo_goal_left_out')],
  }
}

/** The time of the first action that becomes an event; without one, the start of the visit; null without a start. */
function readVisitTime(visit: JsonObject, zone: string | null, window: TimeWindow): number | null {
  const all = listActions(visit)
  const actions = all.filter(isSeparateEvent)
  if (actions.length > 0) return minOf(findMatomoTimes(visit, all, actions, zone, window).values())
  const startUs = readMatomoStart(visit)
  if (startUs !== null) checkTimeInWindow(startUs, window, 'firstActionTimestamp')
  return startUs
}

/** A goal is always reached by another action, which has its own event. */
function isSeparateEvent({ type }: MatomoAction): boolean {
  return type !== 'goal'
}

/** Accepts lists and objects, since PHP writes a list with gaps as an object. */
function listActions(visit: JsonObject): readonly MatomoAction[] {
  const details = getOwnValue(visit, 'actionDetails')
  const list = Array.isArray(details) ? details : isJsonObject(details) ? Object.values(details) : []
  const seen = new Map<string, number>()
  return list.map((value, index) => {
    const path = `actionDetails[${index}]`
    if (!isJsonObject(value)) throw new RecordReject('properties_not_object', path)
    const type = toIdText(getOwnValue(value, 'type')) ?? ''
    if (type === '') throw new RecordReject('event_missing', `${path}.type`)
    const position = (seen.get(type) ?? 0) + 1
    seen.set(type, position)
    return { type, position, path, value }
  })
}

function createVisitProperties(visit: JsonObject, startUs: number): JsonObject {
  const properties = mapMatomoVisitProperties(visit)
  const visitId = toIdText(visit.idVisit)
  if (visitId === null) return properties
  const startMs = Math.floor(startUs / usPerMs)
  putProperty(
    properties,
    '$session_id',
    deriveSessionUuid(startMs, 'matomo', 'session', toIdText(visit.idSite) ?? '', visitId),
  )
  return properties
}

const ecommerceTypes = ['ecommerceOrder', 'ecommerceAbandonedCart']

/** The uuid of an action, derived from its keys in Matomo's own tables. */
function deriveUuid(visit: JsonObject, action: MatomoAction): string {
  const { type, position, value } = action
  const visitId = readIdText(visit, 'idVisit')
  // Actions are only unique within their visit, so without its id the uuid is derived from the whole record.
  if (visitId === '') return deriveContentUuid('matomo', { visit, type, position })
  const parts = ['matomo', readIdText(visit, 'idSite'), visitId]
  const orderId = readIdText(value, 'orderId')
  if (type === 'ecommerceOrder' && orderId !== '') return deriveImportUuid(...parts, type, orderId)
  const pageId = readIdText(value, 'pageId')
  if (!ecommerceTypes.includes(type) && pageId !== '') return deriveImportUuid(...parts, pageId, type)
  return deriveImportUuid(...parts, type, readIdText(value, 'timestamp'), String(position))
}

function readIdText(record: JsonObject, field: string): string {
  return toIdText(getOwnValue(record, field)) ?? ''
}
