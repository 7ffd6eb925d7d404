// Turns one item of a capture request into a captured event, or into the reason why it cannot be one. Applies the rules
// of names, distinct ids, times, uuids and lanes; `prepare-events.ts` decides what a bad item means for its request.

import { truncateToCodePoints } from '../code-points.ts'
import { type CapturedEvent, edgeNote, importWithoutJob, type Lane } from '../events/captured-event.ts'
import { capturedDistinctIdLengthMax } from '../events/distinct-id.ts'
import { err, ok, type Result } from '../result.ts'
import { isTimeUnreadable, resolveEventTime } from './event-time.ts'
import { createEventUuid, type RandomUint32 } from './event-uuid.ts'
import type { IncomingEvent } from './incoming-event.ts'

/** What the events of one request share, in either protocol. */
export interface RequestContext {
  readonly projectId: number
  readonly token: string
  readonly historicalMigration: boolean
  readonly importJobId: number
  /** When the request arrived: the `now` of the timestamp rules. */
  readonly receivedAtMs: number
  /** When the request is accepted; later than `receivedAtMs` only for a replayed reject. */
  readonly capturedAtMs: number
  readonly sentAtMs: number | null
  /** Live events of the main lane at least this old become imports; null when none do. */
  readonly rerouteOlderThanMs: number | null
  /** Address of the connection, '' when unknown. */
  readonly ip: string
}

export interface EventContext extends RequestContext {
  readonly random: RandomUint32
}

/** Why an event is refused, in the order of the checks. `docs/wire/errors.md` has the answers. */
export const eventRefusals = [
  'missing_event_name',
  'timestamp_invalid',
  'missing_distinct_id',
  'invalid_cookieless_mode',
  'event_too_large',
  'ai_event_too_large',
] as const
export type EventRefusal = (typeof eventRefusals)[number]

/** The field at fault. */
export const refusedFields: Readonly<Record<EventRefusal, string>> = {
  missing_event_name: 'event',
  timestamp_invalid: 'timestamp',
  missing_distinct_id: 'distinct_id',
  invalid_cookieless_mode: '$cookieless_mode',
  event_too_large: 'properties',
  ai_event_too_large: 'properties',
}

const nameLengthMax = 200
/** Bounds the JSON texts of one event: the log's readers accept no more. Source: docs/wire/ingestion.md 9. */
export const eventBytesMax = 1_000_000
export const aiEventBytesMax = 8 * 1024 * 1024

/** @returns the complete event, or why it is refused. Source: docs/wire/ingestion.md 1.7 (order), 2.5–2.7, 3, 5. */
export function normalizeEvent(item: IncomingEvent, context: EventContext): Result<CapturedEvent, EventRefusal> {
  if (item.name === '') return err('missing_event_name')
  const { receivedAtMs, sentAtMs } = context
  const timeInput = {
    timestamp: item.timestamp,
    offsetMs: item.offsetMs,
    ignoreSentAt: item.ignoreSentAt,
    sentAtMs,
    receivedAtMs,
    historicalMigration: context.historicalMigration,
  }
  const time = resolveEventTime(timeInput)
  if (!time.ok) return time
  const timestampMs = time.value
  const sentId = item.distinctId === null ? '' : toStorableId(item.distinctId)
  if (sentId === '') return err('missing_distinct_id')
  if (item.cookielessModeInvalid) return err('invalid_cookieless_mode')
  const ownLane = chooseLane(item.name, context.historicalMigration)
  if (!fitsTheLog(item, ownLane)) return err(ownLane === 'ai' ? 'ai_event_too_large' : 'event_too_large')
  const rerouted = ownLane === 'main' && isOldEnoughToReroute(timestampMs, context)
  const historicalMigration = context.historicalMigration || rerouted
  const name = toStoredName(item.name, historicalMigration)
  const distinctId = truncateToCodePoints(sentId, capturedDistinctIdLengthMax)
  const timeUnreadable = timestampMs === receivedAtMs && isTimeUnreadable(timeInput)
  return ok({
    projectId: context.projectId,
    token: context.token,
    lane: rerouted ? 'historical' : ownLane,
    historicalMigration,
    importJobId: rerouted ? importWithoutJob : context.importJobId,
    protocol: 'v0',
    personProcessingForcedOff: false,
    notes:
      (timeUnreadable ? edgeNote.timeUnreadable : 0) |
      (distinctId.length < sentId.length ? edgeNote.distinctIdCut : 0) |
      (name.length < item.name.length && name.length >= nameLengthMax ? edgeNote.nameCut : 0),
    receivedAtMs,
    capturedAtMs: context.capturedAtMs,
    timestampMs,
    sentAtMs,
    uuid: item.uuid ?? createEventUuid(timestampMs, context.random),
    name,
    distinctId,
    ip: item.captureInternal ? '127.0.0.1' : context.ip,
    visitor: null,
    propertiesJson: item.propertiesJson,
    setJson: item.setJson,
    setOnceJson: item.setOnceJson,
  })
}

/** Whether a live event of the main lane becomes an import. Source: docs/wire/ingestion.md 5, age rerouting. */
export function isOldEnoughToReroute(
  timestampMs: number,
  { rerouteOlderThanMs, receivedAtMs }: Pick<RequestContext, 'rerouteOlderThanMs' | 'receivedAtMs'>,
): boolean {
  return rerouteOlderThanMs !== null && timestampMs <= receivedAtMs - rerouteOlderThanMs
}

/**
 * Replaces NUL by U+FFFD and truncates to 200 code points. Gives '' for an id of blanks only, and keeps blanks otherwise.
 */
export function normalizeDistinctId(text: string): string {
  return truncateToCodePoints(toStorableId(text), capturedDistinctIdLengthMax)
}

function toStorableId(text: string): string {
  const clean = text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
  return isBlank(clean) ? '' : clean
}

const aiEventNames = new Set([
  '$ai_generation',
  '$ai_embedding',
  '$ai_span',
  '$ai_trace',
  '$ai_metric',
  '$ai_feedback',
  '$ai_evaluation',
])

/**
 * The lane that an event's name decides. If the name decides none, events of a historical migration take `historical`.
 * Source: docs/wire/ingestion.md 2.7, 5.
 */
export function chooseLane(name: string, historicalMigration: boolean): Lane {
  if (name.charCodeAt(0) === dollar) {
    if (name === '$exception') return 'error_tracking'
    if (name === '$$heatmap') return 'heatmaps'
    if (name === '$$client_ingestion_warning') return 'warnings'
    if (aiEventNames.has(name)) return 'ai'
  }
  return historicalMigration ? 'historical' : 'main'
}

/**
 * The name to store, truncated to 200 code points. `$group_identify` and `$groupidentify` are the same event; an import
 * stores the SDKs' name. Source: docs/wire/import.md 3.7.
 */
export function toStoredName(name: string, historicalMigration: boolean): string {
  if (historicalMigration && name === '$group_identify') return '$groupidentify'
  return truncateToCodePoints(name, nameLengthMax)
}

function fitsTheLog({ propertiesJson, setJson, setOnceJson }: IncomingEvent, lane: Lane): boolean {
  const texts = propertiesJson + (setJson ?? '') + (setOnceJson ?? '')
  return !isLongerThanBytes(texts, lane === 'ai' ? aiEventBytesMax : eventBytesMax)
}

/** Whether a text has more than `bytesMax` bytes in UTF-8; only long texts are measured. */
export function isLongerThanBytes(text: string, bytesMax: number): boolean {
  return text.length * 3 > bytesMax && Buffer.byteLength(text, 'utf8') > bytesMax
}

function isBlank(text: string): boolean {
  const first = text.charCodeAt(0)
  return (first <= 0x20 || first >= 0x80 || text === '') && text.trim() === ''
}

const dollar = 0x24
