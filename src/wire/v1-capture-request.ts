// What the body of a v1 capture request says: its envelope and the fields of each event, with properties kept as slices of
// the client's text. A wrong type anywhere fails the whole batch; what an event of the right types says is judged one by
// one in `core/events/normalize-v1-event.ts`.

import type { IncomingV1Event } from '#core/events/incoming-v1-event.ts'
import { parseStrictTimestampText } from '#core/events/timestamp-text.ts'
import { parseUuid } from '#core/events/uuid.ts'
import { parseJson } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { captureValueCountMax } from './capture-errors.ts'
import { hasLoneSurrogateEscape } from './json-escapes.ts'
import { type ItemSlices, memberSlice, slice, sliceItems, slicesPerItem, valueCountAtMost } from './json-slices.ts'
import {
  duplicateEventUuid,
  invalidCreatedAt,
  invalidEventUuid,
  missingEventUuid,
  unparsableBody,
  v1CaptureErrors,
} from './v1-capture-errors.ts'
import type { WireError } from './wire-error.ts'

/** JSON text in UTF-8, not parsed yet. */
export interface V1Payload {
  readonly bytes: Buffer
  readonly text: string
  /** Byte offsets are text offsets. */
  readonly ascii: boolean
}

export interface V1BatchLimits {
  /** More events than this are left to another thread. */
  readonly itemCountMax: number
  /** More values than this as well; beyond `captureValueCountMax` they are not parsed at all. */
  readonly valueCountMax: number
}

export interface V1Batch {
  readonly historicalMigration: boolean
  readonly captureInternal: boolean
  readonly events: readonly IncomingV1Event[]
  /** The client's own JSON text of an event. */
  sourceJson(index: number): string
}

/** A value and its comma. */
const valueBytesMin = 2

/** An object of `JSON.parse`. Any own key; only read by names that no prototype has. */
type Fields = { readonly [key: string]: unknown }

/**
 * In this order: JSON and types, empty batch, `created_at`, then the uuid of each event.
 * Source: docs/wire/ingestion.md 4.1, 4.2, 2.2 (surrogates).
 */
export function parseV1Batch(payload: V1Payload, limits: V1BatchLimits): Result<V1Batch | 'too_much_work', WireError> {
  if (payload.bytes.length > valueBytesMin * limits.valueCountMax) {
    const count = valueCountAtMost(payload.bytes)
    if (count > captureValueCountMax) return err(v1CaptureErrors.tooManyValues)
    if (count > limits.valueCountMax) return ok('too_much_work')
  }
  let root: unknown
  try {
    root = JSON.parse(payload.text)
  } catch (error) {
    if (error instanceof SyntaxError) return err(unparsableBody(null))
    throw error
  }
  if (hasLoneSurrogateEscape(payload.text)) return err(unparsableBody(null))
  if (!isObject(root)) return err(unparsableBody(null))
  const fault = faultOfEnvelope(root)
  if (fault !== null) return err(unparsableBody(fault))
  const items = root.batch as readonly Fields[]
  if (items.length === 0) return err(v1CaptureErrors.emptyBatch)
  if (items.length > limits.itemCountMax) return ok('too_much_work')
  const createdAt = root.created_at as string
  if (parseStrictTimestampText(createdAt) === null) return err(invalidCreatedAt(createdAt))
  const slices = sliceItems(payload.bytes, 'batch', items.length)
  if (slices === null) return err(unparsableBody('batch'))
  const events = readEvents(items, payload, slices)
  if (!events.ok) return events
  return ok({
    historicalMigration: root.historical_migration === true,
    captureInternal: root.capture_internal === true,
    events: events.value,
    sourceJson: index => textAt(payload, slices, index * slicesPerItem + slice.item),
  })
}

/** The first field that is missing or has a type that it may not have, or null. */
function faultOfEnvelope(root: Fields): string | null {
  const { created_at: createdAt, batch, historical_migration: historical, capture_internal: internal } = root
  if (typeof createdAt !== 'string') return 'created_at'
  if (historical !== undefined && typeof historical !== 'boolean') return 'historical_migration'
  if (internal !== undefined && internal !== null && typeof internal !== 'boolean') return 'capture_internal'
  if (!Array.isArray(batch)) return 'batch'
  for (let index = 0; index < batch.length; index++) {
    const item: unknown = batch[index]
    if (!isObject(item)) return `batch.${index}`
    const fault = faultOfEvent(item)
    if (fault !== null) return `batch.${index}.${fault}`
  }
  return null
}

function faultOfEvent(item: Fields): string | null {
  if (typeof item.event !== 'string') return 'event'
  if (typeof item.uuid !== 'string') return 'uuid'
  if (typeof item.distinct_id !== 'string') return 'distinct_id'
  if (typeof item.timestamp !== 'string') return 'timestamp'
  if (!isTextOrAbsent(item.session_id)) return 'session_id'
  return isTextOrAbsent(item.window_id) ? null : 'window_id'
}

/** Events of one batch are told apart by their uuids in the answer: each needs one, and none may be there twice. */
function readEvents(
  items: readonly Fields[],
  payload: V1Payload,
  slices: ItemSlices,
): Result<IncomingV1Event[], WireError> {
  const events: IncomingV1Event[] = []
  const seen = new Set<string>()
  for (let index = 0; index < items.length; index++) {
    const item = items[index]!
    const sent = (item.uuid as string).trim()
    if (sent === '') return err(missingEventUuid(index))
    const uuid = parseUuid(sent)
    if (uuid === null) return err(invalidEventUuid(sent, index))
    if (seen.has(uuid)) return err(duplicateEventUuid(sent, index))
    seen.add(uuid)
    events.push(incomingEvent(item, uuid, payload, slices, index * slicesPerItem))
  }
  return ok(events)
}

const noProperties: Fields = Object.freeze({})

function incomingEvent(
  item: Fields,
  uuid: string,
  payload: V1Payload,
  slices: ItemSlices,
  base: number,
): IncomingV1Event {
  const { properties, session_id: sessionId, window_id: windowId, options } = item
  const hasProperties = isObject(properties)
  return {
    name: item.event as string,
    uuid,
    distinctId: (item.distinct_id as string).trim(),
    timestamp: item.timestamp as string,
    sessionId: typeof sessionId === 'string' ? sessionId : null,
    windowId: typeof windowId === 'string' ? windowId : null,
    options: options === undefined ? null : optionsOf(options, payload, slices[base + slice.item]!),
    propertiesJson: hasProperties
      ? textAt(payload, slices, base + slice.properties)
      : properties === undefined
        ? '{}'
        : null,
    properties: hasProperties ? properties : noProperties,
  }
}

/** A tour may be named by an integer beyond what a double holds: its literal is kept then. */
function optionsOf(options: unknown, { bytes }: V1Payload, itemStart: number): unknown {
  if (!isObject(options) || typeof options.product_tour_id !== 'number') return options
  const [start, end] = memberSlice(bytes, itemStart, 'options')
  return parseJson(bytes.toString('utf8', start, end))
}

function textAt({ ascii, text, bytes }: V1Payload, slices: ItemSlices, pair: number): string {
  const start = slices[pair]!
  const end = slices[pair + 1]!
  return ascii ? text.substring(start, end) : bytes.toString('utf8', start, end)
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}
