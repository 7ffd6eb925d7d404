// What a v0 capture payload says: its shape, its token, its envelope and the fields of each event, with properties kept
// as slices of the client's text. Types and names are settled here; the rules of events are `core/events`.

import type { IncomingEvent, IncomingRequest, RefusedItem } from '#core/events/incoming-event.ts'
import { parseZonedTimestampText } from '#core/events/timestamp-text.ts'
import { parseJson, textOf } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { brokenEnvelope } from './broken-envelope.ts'
import type { CapturePayload } from './capture-body.ts'
import {
  type ApiKeyFault,
  captureErrors,
  captureValueCountMax,
  hydrationError,
  invalidApiKey,
  invalidJson,
  unknownShape,
} from './capture-errors.ts'
import {
  type Fields,
  faultOfEnvelope,
  faultOfFields,
  faultOfList,
  hasEnvelopeKey,
  hasName,
  isObject,
  type ListKey,
  refusedItemOf,
  tokenFieldOf,
  tokenIn,
  uuidOf,
} from './event-fields.ts'
import { hasLoneSurrogateEscape } from './json-escapes.ts'
import { type ItemSlices, memberSlice, slice, sliceItems, slicesPerItem, valueCountAtMost } from './json-slices.ts'
import type { WireError } from './wire-error.ts'

export interface CaptureContext {
  /** On `/engage` an event needs no name. */
  readonly engage: boolean
  /** `_` or `sent_at` of the query, epoch ms. */
  readonly querySentAtMs: number | null
  /** A key from the query or a header, for a body that holds none. */
  readonly fallbackToken: string | null
  /** More items than this are left to another thread. */
  readonly itemCountMax: number
  /** More values than this as well; beyond `captureValueCountMax` they are not parsed at all. */
  readonly valueCountMax: number
}

/** `token` is the key that the request names, when it could be found: refusals of known projects are kept. */
export interface CaptureRefusal {
  readonly error: WireError
  readonly token: string | null
  /** How many items it has. Absent: that could not be told. */
  readonly eventCount?: number
  /** The one that it has. Absent: there are several, or it could not be told. */
  readonly item?: RefusedItem
  /** Its envelope says that it is an import. */
  readonly historicalMigration?: true
}

export type CaptureParse = Result<IncomingRequest | NoEventLeft | 'too_much_work', CaptureRefusal>

/** There were only `$performance_event`s, which nobody keeps. */
export interface NoEventLeft {
  readonly kind: 'no_event_left'
  /** The key that the request seems to name: it was not checked. */
  readonly token: string | null
  readonly eventCount: number
}

/** A value and its comma. */
const valueBytesMin = 2

interface Shape {
  readonly items: readonly Fields[]
  /** The root's key of the list, for `sliceItems`. */
  readonly listKey: ListKey | null
  /** The root is the one item. */
  readonly isSingle?: true
  /** Of a batch; null where tokens stand in the items. */
  readonly envelope: Fields | null
}

/**
 * In the order of docs/wire/ingestion.md 1.7: JSON, shape, empty batch, `$performance_event`, token.
 * Source: docs/wire/ingestion.md 2; docs/wire/service.md §2.3, §2.5; docs/wire/clients.md 5.2.
 */
export function parseCaptureRequest(payload: CapturePayload, context: CaptureContext): CaptureParse {
  const read = readRoot(payload, context)
  if (!read.ok) return read
  if (read.value === 'too_much_work') return ok('too_much_work')
  const { root } = read.value
  const refuse = refusalOf(root, context)
  const keyOutside = payload.formToken ?? context.fallbackToken
  const shape = shapeOf(root, context.engage, keyOutside !== null)
  if (!shape.ok) return refuse(shape.error)
  const { items, listKey, envelope } = shape.value
  const placeOf = placesOf(shape.value)
  if (items.length === 0) return refuse(captureErrors.emptyBatch)
  if (items.length > context.itemCountMax) return ok('too_much_work')
  if (items.every(isPerformanceEvent)) {
    const named = tokenOf(items, envelope, keyOutside)
    return ok({ kind: 'no_event_left', token: named.ok ? named.value : null, eventCount: items.length })
  }
  const token = tokenOf(items, envelope, keyOutside)
  if (!token.ok) return refuse(token.error)
  const slices = sliceItems(payload.bytes, listKey, items.length)
  if (slices === null) return refuse(captureErrors.nestedTooDeep)
  const kept: number[] = []
  const events: IncomingEvent[] = []
  const ids = idAllowance()
  for (let index = 0; index < items.length; index++) {
    const item = items[index]!
    if (isPerformanceEvent(item)) continue
    kept.push(index)
    const event = incomingEvent(item, payload, slices, index * slicesPerItem, ids)
    // An item that is no event breaks its envelope, like one without a name.
    if (event === 'offset' && envelope !== null) return refuse(hydrationError('invalid_shape', placeOf(index) + event))
    if (typeof event === 'string') return refuse(unknownShape(placeOf(index) + event))
    events.push(event)
  }
  return ok({
    token: token.value,
    historicalMigration: envelope?.historical_migration === true,
    sentAtMs: sentAtOf(envelope) ?? context.querySentAtMs,
    events,
    ...(events.length < items.length && { performanceEventCount: items.length - events.length }),
    sourceJson: index => textAt(payload, slices, kept[index]! * slicesPerItem + slice.item) ?? '',
    placeOf: index => placeOf(kept[index]!),
  })
}

/** What leads to the fields of an item: `batch.3.`, `3.` in a list, nothing where the root is the item. */
export function placesOf({ listKey, isSingle }: Pick<Shape, 'listKey' | 'isSingle'>): (index: number) => string {
  if (isSingle) return () => ''
  return listKey === null ? index => `${index}.` : index => `${listKey}.${index}.`
}

/** What the JSON text says, unless it is none, or too much for here. An object, so that nothing the text says is taken for ours. */
export function readRoot(
  payload: CapturePayload,
  context: CaptureContext,
): Result<{ readonly root: unknown } | 'too_much_work', CaptureRefusal> {
  if (payload.bytes.length > valueBytesMin * context.valueCountMax) {
    const count = valueCountAtMost(payload.bytes)
    if (count > captureValueCountMax) return err({ error: captureErrors.tooManyValues, token: context.fallbackToken })
    if (count > context.valueCountMax) return ok('too_much_work')
  }
  let root: unknown
  try {
    root = JSON.parse(payload.text)
  } catch (error) {
    return err({ error: invalidJson((error as SyntaxError).message), token: null })
  }
  if (hasLoneSurrogateEscape(payload.text)) return refusalOf(root, context)(captureErrors.loneSurrogate)
  return ok({ root })
}

export function refusalOf(root: unknown, context: CaptureContext) {
  return (error: WireError): Result<never, CaptureRefusal> => {
    const items = itemsOf(root)
    return err({
      error,
      token: tokenHint(root) ?? context.fallbackToken,
      eventCount: Math.max(items.length, 1),
      ...(items.length === 1 && { item: refusedItemOf(items[0]) }),
      ...(isObject(root) && items[0] !== root && root.historical_migration === true && { historicalMigration: true }),
    })
  }
}

/** What its items seem to be, whatever is wrong with it. */
function itemsOf(root: unknown): readonly unknown[] {
  if (Array.isArray(root)) return root
  if (!isObject(root)) return [root]
  const list = Array.isArray(root.batch) ? root.batch : hasName(root) ? null : root.data
  return Array.isArray(list) ? list : [root]
}

/** The four shapes, first match wins. Source: docs/wire/ingestion.md 2.1. */
function shapeOf(root: unknown, engage: boolean, keyOutside: boolean): Result<Shape, WireError> {
  if (Array.isArray(root)) {
    const fault = faultOfList(root, '')
    return fault === null ? ok({ items: root as Fields[], listKey: null, envelope: null }) : err(unknownShape(fault))
  }
  if (!isObject(root)) return err(unknownShape(null))
  const listKey = listKeyOf(root, keyOutside)
  if (listKey !== null) {
    const items = root[listKey] as unknown[]
    if (faultOfList(items, `${listKey}.`) === null) return ok({ items: items as Fields[], listKey, envelope: root })
  }
  const fault = faultOfFields(root)
  if (fault !== null) return err(unknownShape(fault))
  if (!hasName(root) && !engage) return err(brokenEnvelope(root, keyOutside))
  return ok({ items: [root], listKey: null, envelope: null, isSingle: true })
}

/** The key of the list of items, where the root has one and no other field of the envelope is wrong; else null. */
export function listKeyOf(root: Fields, keyOutside: boolean): ListKey | null {
  const listKey = Array.isArray(root.batch) ? 'batch' : Array.isArray(root.data) && !hasName(root) ? 'data' : null
  if (listKey === null || faultOfEnvelope(root) !== null) return null
  return keyOutside || hasEnvelopeKey(root, root[listKey] as unknown[]) ? listKey : null
}

/** Source: docs/wire/ingestion.md 2.4; docs/wire/clients.md 1 rule 16 for where else keys stand. */
export function tokenOf(
  items: readonly Fields[],
  envelope: Fields | null,
  outside: string | null,
): Result<string, WireError> {
  let token = envelope === null ? null : tokenFieldOf(envelope)
  if (token === null) {
    for (const item of items) {
      const own = tokenIn(item)
      if (own === null || own === token) continue
      if (token !== null) return err(captureErrors.inconsistentApiKeys)
      token = own
    }
  }
  return checkedToken(token ?? outside)
}

/** The key, trimmed, unless it is missing or no project can have it. Source: docs/wire/ingestion.md 2.4. */
export function checkedToken(token: string | null): Result<string, WireError> {
  if (token === null) return err(captureErrors.missingApiKey)
  const trimmed = token.trim()
  const fault = faultOfToken(trimmed)
  return fault === null ? ok(trimmed) : err(invalidApiKey(fault))
}

const tokenBytesMax = 64

export function faultOfToken(token: string): ApiKeyFault | null {
  if (token === '') return 'empty'
  if (Buffer.byteLength(token) > tokenBytesMax) return 'too_long'
  for (let at = 0; at < token.length; at++) if (token.charCodeAt(at) > 0x7f) return 'not_ascii'
  if (token.startsWith('phx_')) return 'personal_api_key'
  return token.includes('\0') ? 'null_byte' : null
}

/** The key that a refused request seems to name: good enough to keep the reject where its project finds it. */
export function tokenHint(root: unknown): string | null {
  const holder = Array.isArray(root) ? root[0] : root
  return isObject(holder) ? (tokenIn(holder)?.trim() ?? null) : null
}

export function sentAtOf(envelope: Fields | null): number | null {
  const text = envelope?.sent_at ?? envelope?.sentAt
  return typeof text === 'string' ? parseZonedTimestampText(text) : null
}

const emptyProperties: Fields = Object.freeze({})

/**
 * Of all ids of one request that are lists or objects: reading those with their literals takes a microsecond a byte, and of
 * each the first 200 characters are kept. Source: ours.
 */
const structuredIdBytesMax = 64 * 1024

export interface IdAllowance {
  bytesLeft: number
}

export function idAllowance(): IdAllowance {
  return { bytesLeft: structuredIdBytesMax }
}

/** The field that makes it none: its id is a list or an object and too long, its offset is written as a fraction or too large. */
export function incomingEvent(
  item: Fields,
  payload: CapturePayload,
  slices: ItemSlices,
  base: number,
  ids: IdAllowance,
): IncomingEvent | 'distinct_id' | 'offset' {
  if (typeof item.offset === 'number' && !isInteger64(textAt(payload, slices, base + slice.offset)!)) return 'offset'
  const properties = isObject(item.properties) ? item.properties : emptyProperties
  const propertiesJson = properties === emptyProperties ? '{}' : textAt(payload, slices, base + slice.properties)!
  const cookielessMode = properties.$cookieless_mode
  const distinctId = distinctIdOf(item, payload, slices, base, ids)
  if (distinctId === undefined) return 'distinct_id'
  return {
    name: hasName(item) ? (item.event as string) : '$identify',
    distinctId,
    uuid: uuidOf(item),
    timestamp: typeof item.timestamp === 'string' ? item.timestamp : null,
    offsetMs: typeof item.offset === 'number' ? item.offset : null,
    ignoreSentAt: properties.$ignore_sent_at === true,
    cookielessModeInvalid: cookielessMode !== undefined && typeof cookielessMode !== 'boolean',
    captureInternal: properties.capture_internal !== undefined,
    propertiesJson,
    setJson: isObject(item.$set) ? textAt(payload, slices, base + slice.set) : null,
    setOnceJson: isObject(item.$set_once) ? textAt(payload, slices, base + slice.setOnce) : null,
  }
}

/** Null: it has none. Undefined: it is a list or an object and too long. Source: docs/wire/ingestion.md 2.5. */
export function distinctIdOf(
  item: Fields,
  payload: CapturePayload,
  slices: ItemSlices,
  base: number,
  ids: IdAllowance = { bytesLeft: structuredIdBytesMax },
): string | null | undefined {
  const own = item.distinct_id ?? item.$distinct_id ?? null
  if (own !== null)
    return idText(own, payload, slices[base + slice.distinctId]!, slices[base + slice.distinctId + 1]!, ids)
  const properties = isObject(item.properties) ? item.properties : emptyProperties
  return distinctIdIn(properties, payload, slices[base + slice.properties]!, ids)
}

function distinctIdIn(
  properties: Fields,
  payload: CapturePayload,
  propertiesStart: number,
  ids: IdAllowance,
): string | null | undefined {
  const name = (properties.distinct_id ?? null) === null ? '$distinct_id' : 'distinct_id'
  const inside = properties[name] ?? null
  if (inside === null || typeof inside === 'string') return inside
  const [start, end] = memberSlice(payload.bytes, propertiesStart, name)
  return idText(inside, payload, start, end, ids)
}

/** What is no text is read again from its place, keeping number literals: 64-bit ids do not fit a double. Undefined: too long. */
function idText(
  id: unknown,
  payload: CapturePayload,
  start: number,
  end: number,
  ids: IdAllowance,
): string | undefined {
  if (typeof id === 'string') return id
  if (typeof id === 'object') {
    ids.bytesLeft -= end - start
    if (ids.bytesLeft < 0) return undefined
  }
  return textOf(parseJson(payload.bytes.toString('utf8', start, end)))
}

export function textAt(payload: CapturePayload, slices: ItemSlices, pair: number): string | null {
  const start = slices[pair]!
  const end = slices[pair + 1]!
  if (end === 0) return null
  return payload.ascii ? payload.text.substring(start, end) : payload.bytes.toString('utf8', start, end)
}

export function isPerformanceEvent(item: Fields): boolean {
  return item.event === '$performance_event'
}

/** Whether a number, as it is written, is an integer of 64 bits: `1.0`, `1e3` and 2^63 are none. Source: docs/wire/ingestion.md 2.2. */
function isInteger64(literal: string): boolean {
  if (literal.length <= 18) return /^-?\d+$/.test(literal)
  if (!/^-?\d{18,19}$/.test(literal)) return false
  const integer = BigInt(literal)
  return BigInt.asIntN(64, integer) === integer
}
