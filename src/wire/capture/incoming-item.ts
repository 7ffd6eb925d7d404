// Reads one item of a v0 capture payload as an event, with properties kept as slices of the client's text.

import type { IncomingEvent, PerformanceEvent } from '#core/capture/incoming-event.ts'
import { parseJson, toComparableText } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { findMemberSlice, type ItemSlices, slice } from '../bytes/json-slices.ts'
import type { CapturePayload } from './capture-body.ts'
import { hasEventName, isObject, type ParsedObject, uuidOf, uuidOfValidItem } from './event-fields.ts'
import { visitorMembersOf } from './request-outline.ts'

const emptyProperties: ParsedObject = Object.freeze({})

/**
 * Bounds the bytes of all ids of one request that are lists or objects: serializing them takes up to half a microsecond
 * a byte, and only the first 200 characters of each are kept. Source: ours.
 */
export const structuredIdBytesMax = 64 * 1024

/** How many bytes of ids that are lists or objects one request may have in the thread that reads it. */
export interface IdByteBudget {
  readonly bytesMax: number
  bytesLeft: number
}

/** @param bytesMax at most `structuredIdBytesMax`; when it is lower, exceeding it is `too_much_work`. */
export function createIdByteBudget(bytesMax: number): IdByteBudget {
  return { bytesMax, bytesLeft: bytesMax }
}

/**
 * @param item an item without a fault (`findFieldsFault`).
 * @returns the event, or the field that makes it invalid: an id that is a list or object and too long, or an offset that is
 * a fraction or too large.
 */
export function buildIncomingEvent(
  item: ParsedObject,
  payload: CapturePayload,
  slices: ItemSlices,
  base: number,
  ids: IdByteBudget,
): IncomingEvent | 'distinct_id' | 'offset' | 'too_much_work' {
  if (typeof item.offset === 'number' && !isInteger64(readSliceText(payload, slices, base + slice.offset)!))
    return 'offset'
  const properties = isObject(item.properties) ? item.properties : emptyProperties
  const propertiesJson =
    properties === emptyProperties ? '{}' : readSliceText(payload, slices, base + slice.properties)!
  const cookielessMode = properties.$cookieless_mode
  const id = distinctIdOf(item, payload, slices, base, ids)
  if (!id.ok) return id.error
  return {
    kind: 'event',
    name: hasEventName(item) ? (item.event as string) : '$identify',
    distinctId: id.value,
    uuid: uuidOfValidItem(item),
    timestamp: typeof item.timestamp === 'string' ? item.timestamp : null,
    offsetMs: typeof item.offset === 'number' ? item.offset : null,
    ignoreSentAt: properties.$ignore_sent_at === true,
    isCookieless: cookielessMode === true,
    cookielessModeInvalid: cookielessMode !== undefined && typeof cookielessMode !== 'boolean',
    captureInternal: properties.capture_internal !== undefined,
    propertiesJson,
    setJson: isObject(item.$set) ? readSliceText(payload, slices, base + slice.set) : null,
    setOnceJson: isObject(item.$set_once) ? readSliceText(payload, slices, base + slice.setOnce) : null,
    visitorMembers: visitorMembersOf(properties),
  }
}

/** Why an id that is a list or an object is not read: it is too long for every thread, or only for the current thread. */
type UnreadId = 'distinct_id' | 'too_much_work'

/** The distinct id as text; null when absent. Source: docs/wire/ingestion.md 2.5. */
export function distinctIdOf(
  item: ParsedObject,
  payload: CapturePayload,
  slices: ItemSlices,
  base: number,
  ids: IdByteBudget,
): Result<string | null, UnreadId> {
  const own = item.distinct_id ?? item.$distinct_id ?? null
  if (own !== null)
    return readIdText(own, payload, slices[base + slice.distinctId]!, slices[base + slice.distinctId + 1]!, ids)
  const properties = isObject(item.properties) ? item.properties : emptyProperties
  return readDistinctIdIn(properties, payload, slices[base + slice.properties]!, ids)
}

function readDistinctIdIn(
  properties: ParsedObject,
  payload: CapturePayload,
  propertiesStart: number,
  ids: IdByteBudget,
): Result<string | null, UnreadId> {
  const name = (properties.distinct_id ?? null) === null ? '$distinct_id' : 'distinct_id'
  const inside = properties[name] ?? null
  if (inside === null || typeof inside === 'string') return ok(inside)
  const [start, end] = findMemberSlice(payload.bytes, propertiesStart, name)
  return readIdText(inside, payload, start, end, ids)
}

/** An id that is not text is parsed again from its slice with number literals: 64-bit ids do not fit a double. */
function readIdText(
  id: unknown,
  payload: CapturePayload,
  start: number,
  end: number,
  ids: IdByteBudget,
): Result<string, UnreadId> {
  if (typeof id === 'string') return ok(id)
  if (typeof id === 'object') {
    ids.bytesLeft -= end - start
    if (ids.bytesLeft < 0) return err(ids.bytesMax < structuredIdBytesMax ? 'too_much_work' : 'distinct_id')
  }
  return ok(toComparableText(parseJson(payload.bytes.toString('utf8', start, end))))
}

export function readSliceText(payload: CapturePayload, slices: ItemSlices, pair: number): string | null {
  const start = slices[pair]!
  const end = slices[pair + 1]!
  if (end === 0) return null
  return payload.ascii ? payload.text.substring(start, end) : payload.bytes.toString('utf8', start, end)
}

export function isPerformanceEvent(item: ParsedObject): boolean {
  return item.event === '$performance_event'
}

export function buildPerformanceEvent(item: ParsedObject): PerformanceEvent {
  return { kind: 'performance', uuid: uuidOf(item) ?? '' }
}

/** Whether a literal is a 64-bit integer as written; `1.0`, `1e3`, 2^63 are not. Source: docs/wire/ingestion.md 2.2. */
function isInteger64(literal: string): boolean {
  if (literal.length <= 18) return /^-?\d+$/.test(literal)
  if (!/^-?\d{18,19}$/.test(literal)) return false
  const integer = BigInt(literal)
  return BigInt.asIntN(64, integer) === integer
}
