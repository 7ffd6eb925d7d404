// Decides which accepted events never become a row, and why. Every drop is counted by reason; most raise a warning too.

import { getOwnValue, type JsonObject, type JsonValue } from '../json.ts'
import type { Project } from '../project.ts'
import type { CapturedEvent } from './captured-event.ts'
import { storedDistinctIdLengthMax } from './distinct-id.ts'
import { groupEventNames, mergeEventNames } from './event-names.ts'
import { groupKeyLengthMax, readGroupKey } from './group-identity.ts'
import { truncateForWarning } from './warning-types.ts'

export const dropReasons = [
  'unknown_project',
  'person_erased',
  'heatmap',
  'client_ingestion_warning',
  'skipping_event_invalid_distinct_id',
  'invalid_anon_distinct_id',
  'invalid_alias',
  'group_key_too_long',
  'event_dropped_too_old',
  'invalid_event_when_process_person_profile_is_false',
] as const
export type DropReason = (typeof dropReasons)[number]

export interface Drop {
  readonly reason: DropReason
  /** Details of the warning to raise under the reason's name, or null. */
  readonly warning: JsonObject | null
}

const messageLengthMax = 1_000

/** The fields that decide whether an event is dropped. */
type DroppableEvent = Pick<
  CapturedEvent,
  'uuid' | 'name' | 'distinctId' | 'historicalMigration' | 'receivedAtMs' | 'timestampMs'
>

/**
 * Returns the reason to drop an event, or null to keep it.
 * @param isPersonless whether the event or its project requests no person. False if the edge switched persons off: such an
 *   event is kept.
 * Source: docs/wire/ingestion.md 6.1 steps 2, 3, 5 and 6; 6.2, 6.5, 6.7, 2.7.
 */
export function findEventDropReason(
  event: DroppableEvent,
  properties: JsonObject,
  project: Pick<Project, 'ingestion'>,
  isPersonless: boolean,
): Drop | null {
  const { name, distinctId } = event
  if (name.startsWith('$$')) {
    if (name === '$$heatmap') return { reason: 'heatmap', warning: null }
    if (name === '$$client_ingestion_warning') {
      const message = truncateForWarning(
        getOwnValue(properties, '$$client_ingestion_warning_message') ?? '',
        messageLengthMax,
      )
      return makeDrop('client_ingestion_warning', event, { message })
    }
  }
  if (distinctId.length > storedDistinctIdLengthMax)
    return makeDrop('skipping_event_invalid_distinct_id', event, { distinctId: truncateForWarning(distinctId) })
  if (mergeEventNames.has(name)) {
    const anonId = getOwnValue(properties, '$anon_distinct_id')
    if (isUnusableId(anonId)) return makeDrop('invalid_anon_distinct_id', event, { receivedType: getTypeName(anonId) })
    const alias = getOwnValue(properties, 'alias')
    if (isUnusableId(alias)) return makeDrop('invalid_alias', event, { receivedType: getTypeName(alias) })
  }
  if (groupEventNames.has(name)) {
    const key = readGroupKey(properties)
    if (key !== null && key.length > groupKeyLengthMax)
      return makeDrop('group_key_too_long', event, {
        groupKey: truncateForWarning(key),
        groupKeyLength: key.length,
        maxLength: groupKeyLengthMax,
      })
  }
  const tooOld = findTooOldDrop(event, project)
  if (tooOld !== null) return tooOld
  if (isPersonless && mergeEventNames.has(name))
    return makeDrop('invalid_event_when_process_person_profile_is_false', event)
  return null
}

/**
 * The age is measured at the event's arrival, so that no event is dropped because the worker lags. Imports are old on
 * purpose and are exempt.
 */
function findTooOldDrop(event: DroppableEvent, { ingestion }: Pick<Project, 'ingestion'>): Drop | null {
  const secondsMax = ingestion.dropEventsOlderThanSeconds
  if (secondsMax === null || secondsMax === 0 || event.historicalMigration) return null
  const ageMs = event.receivedAtMs - event.timestampMs
  if (ageMs <= secondsMax * 1000) return null
  return makeDrop('event_dropped_too_old', event, {
    eventTimestamp: new Date(event.timestampMs).toISOString(),
    ageInSeconds: Math.floor(ageMs / 1000),
    dropThresholdSeconds: secondsMax,
  })
}

function makeDrop(reason: DropReason, event: DroppableEvent, more?: JsonObject): Drop {
  return { reason, warning: { eventUuid: event.uuid, event: event.name, distinctId: event.distinctId, ...more } }
}

function isUnusableId(value: JsonValue | undefined): value is Exclude<JsonValue, string | null> {
  return value !== undefined && value !== null && typeof value !== 'string'
}

function getTypeName(value: JsonValue): string {
  return Array.isArray(value) ? 'array' : typeof value
}
