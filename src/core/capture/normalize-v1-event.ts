// Turns one event of a v1 batch into a captured event, or drops it with the reason that the answer gives its client. No
// fault of an event fails the batch. Fields that v1 sends along with the properties (session, options, SDK) are spliced
// into the properties' text, so that all readers of the log see one form of event.

import type { ClientSdk } from '../events/captured-event.ts'
import { type CapturedEvent, importWithoutJob } from '../events/captured-event.ts'
import { capturedDistinctIdBytesMax } from '../events/distinct-id.ts'
import { appendJsonMembers } from '../events/properties-draft.ts'
import { isRawNumber, type JsonObject, type JsonValue, readJsonNumber } from '../json.ts'
import { removeMembers } from '../json-text.ts'
import { err, ok, type Result } from '../result.ts'
import { resolveStrictEventTime } from './event-time.ts'
import type { IncomingV1Event } from './incoming-event.ts'
import {
  aiEventBytesMax,
  chooseLane,
  eventBytesMax,
  isLongerThanBytes,
  isOldEnoughToReroute,
  type RequestContext,
  toStoredName,
} from './normalize-event.ts'

export interface V1EventContext extends RequestContext {
  readonly sentAtMs: number
  readonly sdk: ClientSdk | null
  readonly aiOnly: boolean
}

/** Why an event is dropped, in the order of the checks. These codes are sent to clients. */
export const v1DropReasons = [
  'dropped_performance_event',
  'missing_event_name',
  'event_name_too_long',
  'missing_distinct_id',
  'distinct_id_too_large',
  'invalid_event_timestamp',
  'malformed_event_properties',
  'invalid_options',
  'misrouted_event',
  'event_too_big',
  'ai_event_too_big',
] as const
export type V1DropReason = (typeof v1DropReasons)[number]

export interface V1Drop {
  readonly reason: V1DropReason
  /** The field at fault. */
  readonly field: string
}

const nameBytesMax = 200

/**
 * @returns the complete event, or why it is dropped.
 * Source: docs/wire/ingestion.md 4.1–4.3, 3, 5, 6.4; docs/wire/import.md §3.6.
 */
export function normalizeV1Event(item: IncomingV1Event, context: V1EventContext): Result<CapturedEvent, V1Drop> {
  const { name, distinctId, propertiesJson } = item
  if (name === '$performance_event') return toDropResult('dropped_performance_event', 'event')
  if (name === '') return toDropResult('missing_event_name', 'event')
  if (isLongerThanBytes(name, nameBytesMax)) return toDropResult('event_name_too_long', 'event')
  if (distinctId === '') return toDropResult('missing_distinct_id', 'distinct_id')
  if (isLongerThanBytes(distinctId, capturedDistinctIdBytesMax))
    return toDropResult('distinct_id_too_large', 'distinct_id')
  // The event's time depends on the options, so the options are read first, but faults are still reported in the order of
  // `v1DropReasons`.
  const options = readOptions(item.options)
  const { receivedAtMs, sentAtMs } = context
  const disableSkewCorrection = options.ok && options.value.disableSkewCorrection === true
  const { timestamp } = item
  const time = resolveStrictEventTime({
    timestamp,
    disableSkewCorrection,
    sentAtMs,
    receivedAtMs,
    historicalMigration: context.historicalMigration,
  })
  if (!time.ok) return toDropResult('invalid_event_timestamp', 'timestamp')
  if (propertiesJson === null) return toDropResult('malformed_event_properties', 'properties')
  if (!options.ok) return toDropResult('invalid_options', options.error)
  const ownLane = chooseLane(name, context.historicalMigration)
  if (context.aiOnly && ownLane !== 'ai') return toDropResult('misrouted_event', 'event')
  const completeJson = spliceV1Fields(propertiesJson, item, options.value, context.sdk)
  const bytesMax = ownLane === 'ai' ? aiEventBytesMax : eventBytesMax
  if (isLongerThanBytes(completeJson, bytesMax))
    return toDropResult(ownLane === 'ai' ? 'ai_event_too_big' : 'event_too_big', 'properties')
  const isRerouted = ownLane === 'main' && isOldEnoughToReroute(time.value, context)
  const historicalMigration = context.historicalMigration || isRerouted
  return ok({
    projectId: context.projectId,
    token: context.token,
    lane: isRerouted ? 'historical' : ownLane,
    historicalMigration,
    importJobId: isRerouted ? importWithoutJob : context.importJobId,
    protocol: 'v1',
    personProcessingForcedOff: isIllegalV1DistinctId(distinctId),
    notes: 0,
    receivedAtMs,
    capturedAtMs: context.capturedAtMs,
    timestampMs: time.value,
    // Times of an import are taken as written, so its send time has no effect.
    sentAtMs: context.historicalMigration ? null : sentAtMs,
    uuid: item.uuid,
    name: toStoredName(name, historicalMigration),
    distinctId: distinctId.includes('\0') ? distinctId.replaceAll('\0', '\ufffd') : distinctId,
    ip: context.ip,
    visitor: null,
    propertiesJson: completeJson,
    setJson: null,
    setOnceJson: null,
  })
}

function toDropResult(reason: V1DropReason, field: string): Result<never, V1Drop> {
  return err({ reason, field })
}

const illegalDistinctIds = new Set([
  '0',
  '00000000-0000-0000-0000-000000000000',
  '[object object]',
  'anonymous',
  'anonymous-user',
  'backend',
  'distinct_id',
  'distinctid',
  'email',
  'false',
  'guest',
  'id',
  'nan',
  'none',
  'not_authenticated',
  'null',
  'system',
  'true',
  'undefined',
  'user',
])

/**
 * Whether the id is a placeholder that many people would share. Its events are stored without a person.
 * @param distinctId trimmed. Merges use a different list. Source: docs/wire/ingestion.md 6.4, the list of the v1 edge.
 */
export function isIllegalV1DistinctId(distinctId: string): boolean {
  return distinctId.length <= 36 && illegalDistinctIds.has(distinctId.toLowerCase())
}

interface V1Options {
  readonly cookielessMode: boolean | null
  readonly disableSkewCorrection: boolean | null
  readonly processPersonProfile: boolean | null
  readonly productTourId: string | null
}

const noOptions: Result<V1Options, never> = ok({
  cookielessMode: null,
  disableSkewCorrection: null,
  processPersonProfile: null,
  productTourId: null,
})

/** @returns the known options, or the name of the first one that cannot be read. Unknown options are ignored. */
function readOptions(sent: unknown): Result<V1Options, string> {
  if (sent === null) return noOptions
  if (typeof sent !== 'object' || Array.isArray(sent)) return err('options')
  const options = sent as { readonly [key: string]: unknown }
  const cookielessMode = readBooleanOption(options.cookieless_mode)
  const disableSkewCorrection = readBooleanOption(options.disable_skew_correction)
  const processPersonProfile = readBooleanOption(options.process_person_profile)
  const productTourId = readTourId(options.product_tour_id)
  if (cookielessMode === undefined) return err('options.cookieless_mode')
  if (disableSkewCorrection === undefined) return err('options.disable_skew_correction')
  if (processPersonProfile === undefined) return err('options.process_person_profile')
  if (productTourId === undefined) return err('options.product_tour_id')
  return ok({ cookielessMode, disableSkewCorrection, processPersonProfile, productTourId })
}

/** Whether a valid event is of cookieless mode: the option decides, or else the property. */
export function isCookielessV1Event({ options, properties }: IncomingV1Event): boolean {
  const sent = readOptions(options)
  return ((sent.ok ? sent.value.cookielessMode : null) ?? properties.$cookieless_mode) === true
}

/** Reads a boolean option; null when it was not sent, undefined when it cannot be read. */
function readBooleanOption(value: unknown): boolean | null | undefined {
  if (value === undefined || value === null) return null
  if (typeof value === 'boolean') return value
  if (typeof value !== 'string') {
    const number = readJsonNumber(value as JsonValue)
    return number === undefined ? undefined : number !== 0
  }
  const text = value.trim().toLowerCase()
  if (text === 'true' || text === '1') return true
  return text === 'false' || text === '0' ? false : undefined
}

/** Takes a string, or an integer by its literal: rounding it to a double would name another tour. */
function readTourId(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return value
  const literal = isRawNumber(value) ? value.rawJSON : Number.isSafeInteger(value) ? String(value) : ''
  return /^-?\d{1,20}$/.test(literal) ? literal : undefined
}

/**
 * The client's properties plus the fields that v1 sends along with them. These fields win over properties of the same name.
 * Source: docs/wire/ingestion.md 4.1.
 */
function spliceV1Fields(text: string, item: IncomingV1Event, options: V1Options, sdk: ClientSdk | null): string {
  const injected: JsonObject = {}
  if (item.sessionId !== null) injected.$session_id = item.sessionId
  if (item.windowId !== null) injected.$window_id = item.windowId
  if (options.cookielessMode !== null) injected.$cookieless_mode = options.cookielessMode
  if (options.disableSkewCorrection !== null) injected.$ignore_sent_at = options.disableSkewCorrection
  if (options.productTourId !== null) injected.$product_tour_id = options.productTourId
  if (options.processPersonProfile !== null) injected.$process_person_profile = options.processPersonProfile
  if (sdk !== null) {
    injected.$lib = sdk.name
    injected.$lib_version = sdk.version
  }
  const repeated = Object.keys(injected).filter(key => Object.hasOwn(item.properties, key))
  return appendJsonMembers(repeated.length === 0 ? text : removeMembers(text, new Set(repeated)), injected)
}
