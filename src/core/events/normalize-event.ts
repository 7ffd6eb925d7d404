// One item of a capture request becomes a captured event, or a reason why it cannot be one. Applies the rules of names,
// distinct ids, times, uuids and lanes; what a bad item means for its request is decided by `prepare-events.ts`.

import { err, ok, type Result } from '../result.ts'
import type { CapturedEvent, Lane } from './captured-event.ts'
import { eventTime } from './event-time.ts'
import { newEventUuid, type RandomUint32 } from './event-uuid.ts'
import type { IncomingEvent } from './incoming-event.ts'

/** What the events of one request have in common. */
export interface EventContext {
  readonly projectId: number
  readonly token: string
  readonly historicalMigration: boolean
  readonly importJobId: number
  readonly receivedAtMs: number
  readonly sentAtMs: number | null
  /** Address of the connection, '' when unknown. */
  readonly ip: string
  readonly random: RandomUint32
}

/** Why an event is refused, in the order in which it is looked for. `docs/wire/errors.md` has their answers. */
export const eventRefusals = [
  'missing_event_name',
  'timestamp_invalid',
  'missing_distinct_id',
  'invalid_cookieless_mode',
  'event_too_large',
  'ai_event_too_large',
] as const
export type EventRefusal = (typeof eventRefusals)[number]

const nameLengthMax = 200
const distinctIdLengthMax = 200
/** Of the JSON texts of one event; more would not fit what reads the log. Source: docs/wire/ingestion.md 9. */
export const eventBytesMax = 1_000_000
export const aiEventBytesMax = 8 * 1024 * 1024

/** @returns the event, complete, or why there is none. Source: docs/wire/ingestion.md 1.7 (order), 2.5–2.7, 3, 5. */
export function normalizeEvent(item: IncomingEvent, context: EventContext): Result<CapturedEvent, EventRefusal> {
  if (item.name === '') return err('missing_event_name')
  const { historicalMigration, receivedAtMs, sentAtMs } = context
  const time = eventTime({
    timestamp: item.timestamp,
    offsetMs: item.offsetMs,
    ignoreSentAt: item.ignoreSentAt,
    sentAtMs,
    receivedAtMs,
    historicalMigration,
  })
  if (!time.ok) return time
  const distinctId = item.distinctId === null ? '' : normalizeDistinctId(item.distinctId)
  if (distinctId === '') return err('missing_distinct_id')
  if (item.cookielessModeInvalid) return err('invalid_cookieless_mode')
  const lane = laneOf(item.name, historicalMigration)
  if (!fitsTheLog(item, lane)) return err(lane === 'ai' ? 'ai_event_too_large' : 'event_too_large')
  return ok({
    projectId: context.projectId,
    token: context.token,
    lane,
    historicalMigration,
    importJobId: context.importJobId,
    protocol: 'v0',
    personProcessingForcedOff: false,
    receivedAtMs,
    capturedAtMs: receivedAtMs,
    timestampMs: time.value,
    sentAtMs,
    uuid: item.uuid ?? newEventUuid(time.value, context.random),
    name: storedName(item.name, historicalMigration),
    distinctId,
    ip: item.captureInternal ? '127.0.0.1' : context.ip,
    propertiesJson: item.propertiesJson,
    setJson: item.setJson,
    setOnceJson: item.setOnceJson,
  })
}

/** NUL becomes U+FFFD, more than 200 code points are cut; '' when only blanks are left. Other blanks are kept. */
export function normalizeDistinctId(text: string): string {
  const clean = text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
  if (isBlank(clean)) return ''
  return cutToCodePoints(clean, distinctIdLengthMax)
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

/** Lanes go by name; what is left of a historical migration takes the lane of its own. Source: docs/wire/ingestion.md 2.7, 5. */
export function laneOf(name: string, historicalMigration: boolean): Lane {
  if (name.charCodeAt(0) === dollar) {
    if (name === '$exception') return 'error_tracking'
    if (name === '$$heatmap') return 'heatmaps'
    if (name === '$$client_ingestion_warning') return 'warnings'
    if (aiEventNames.has(name)) return 'ai'
  }
  return historicalMigration ? 'historical' : 'main'
}

/** `$group_identify` and `$groupidentify` are one event; an import stores the SDKs' name. Source: docs/wire/import.md 3.7. */
function storedName(name: string, historicalMigration: boolean): string {
  if (historicalMigration && name === '$group_identify') return '$groupidentify'
  return cutToCodePoints(name, nameLengthMax)
}

function fitsTheLog(item: IncomingEvent, lane: Lane): boolean {
  const bytesMax = lane === 'ai' ? aiEventBytesMax : eventBytesMax
  const texts = [item.propertiesJson, item.setJson ?? '', item.setOnceJson ?? '']
  const length = texts[0]!.length + texts[1]!.length + texts[2]!.length
  // A UTF-16 unit is at most three bytes: only large events are measured.
  if (length * 3 <= bytesMax) return true
  return texts.reduce((bytes, text) => bytes + utf8Bytes(text), 0) <= bytesMax
}

function utf8Bytes(text: string): number {
  return Buffer.byteLength(text, 'utf8')
}

function isBlank(text: string): boolean {
  const first = text.charCodeAt(0)
  return (first <= 0x20 || first >= 0x80 || text === '') && text.trim() === ''
}

/** The first code points of a text; a text within the limit comes back as it is. */
function cutToCodePoints(text: string, codePointCountMax: number): string {
  if (text.length <= codePointCountMax) return text
  let end = 0
  for (let count = 0; count < codePointCountMax && end < text.length; count++) {
    end += text.codePointAt(end)! > 0xffff ? 2 : 1
  }
  return text.slice(0, end)
}

const dollar = 0x24
