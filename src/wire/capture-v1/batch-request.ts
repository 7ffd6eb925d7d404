// Reads the body of a v1 capture request: its envelope and the fields of each event, with properties kept as slices of
// the client's text. A wrong type anywhere fails the whole batch. Events with the right types are judged one by one in
// `core/capture/normalize-v1-event.ts`.

import type { IncomingV1Event, IncomingV1Request, RefusedItem } from '#core/capture/incoming-event.ts'
import { parseStrictTimestampText } from '#core/capture/timestamp-text.ts'
import { parseUuid } from '#core/events/uuid.ts'
import { parseJsonWithDoubles, parseNumberOrLiteral } from '#core/json.ts'
import { hasLoneSurrogateEscape } from '#core/json-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import { findItemSlices, findMemberSlice, type ItemSlices, slice, slicesPerItem } from '../bytes/json-slices.ts'
import type { CapturePayload } from '../capture/capture-body.ts'
import { captureItemCountMax } from '../capture/capture-errors.ts'
import { isObject, isTextOrAbsent, type ParsedObject, refusedItemOf } from '../capture/event-fields.ts'
import { hasTooManyValues, isNestedTooDeepToParse } from '../capture/open-request.ts'
import type { WireError } from '../wire-error.ts'
import {
  createDuplicateUuidError,
  createInvalidCreatedAtError,
  createInvalidUuidError,
  createMissingUuidError,
  createUnparsableBodyError,
  v1CaptureErrors,
} from './batch-errors.ts'

export type V1Payload = Omit<CapturePayload, 'formToken'>

/** The bounds within which a batch is read. */
export interface V1BatchLimits {
  /** A batch of more events is left to a decode thread; one of more than `captureItemCountMax` is refused. */
  readonly itemCountMax: number
  /** Whether bad items are left out. When absent, an item that is not an event or lacks a uuid fails the batch. */
  readonly itemised?: boolean
}

export interface V1Batch extends Pick<IncomingV1Request, 'isItemised' | 'sourceJson' | 'placeOf'> {
  readonly historicalMigration: boolean
  readonly captureInternal: boolean
  readonly items: readonly IncomingV1Event[]
  /** How many events were left out of an itemised batch. */
  readonly leftOutCount: number
}

/** A batch that fails as a whole. */
export interface V1BatchRefusal {
  readonly error: WireError
  /** The number of events in the batch; 1 when it is unknown. */
  readonly eventCount: number
  /** The batch's only event; absent when there are several or the number is unknown. */
  readonly item?: RefusedItem
  readonly historicalMigration?: true
}

/**
 * Checks in this order: JSON and types, empty batch, too many events, `created_at`, then the uuid of each event.
 * Source: docs/wire/ingestion.md 4.1, 4.2, 2.2 (surrogates).
 */
export function parseV1Batch(
  payload: V1Payload,
  limits: V1BatchLimits,
): Result<V1Batch | 'too_much_work', V1BatchRefusal> {
  if (hasTooManyValues(payload.bytes)) return refuseBatch(null, v1CaptureErrors.tooManyValues)
  const slices = findItemSlices(payload.bytes, 'batch', captureItemCountMax)
  if (slices === null && isNestedTooDeepToParse(payload.text))
    return refuseBatch(null, createUnparsableBodyError('batch'))
  let root: unknown
  try {
    root = parseJsonWithDoubles(payload.text)
  } catch (error) {
    if (error instanceof SyntaxError) return refuseBatch(null, createUnparsableBodyError(null))
    throw error
  }
  if (hasLoneSurrogateEscape(payload.text)) return refuseBatch(root, createUnparsableBodyError(null))
  if (!isObject(root)) return refuseBatch(root, createUnparsableBodyError(null))
  const fault = findEnvelopeFault(root)
  if (fault !== null) return refuseBatch(root, createUnparsableBodyError(fault))
  const items = root.batch as readonly unknown[]
  const leftOut = limits.itemised === true ? new LeftOutItems() : null
  const itemFault = findItemsFault(items, leftOut)
  if (itemFault !== null) return refuseBatch(root, itemFault)
  if (items.length === 0) return refuseBatch(root, v1CaptureErrors.emptyBatch)
  if (items.length > captureItemCountMax) return refuseBatch(root, v1CaptureErrors.tooManyItems)
  if (items.length > limits.itemCountMax) return ok('too_much_work')
  const createdAt = root.created_at as string
  if (parseStrictTimestampText(createdAt) === null) return refuseBatch(root, createInvalidCreatedAtError(createdAt))
  if (slices === null) return refuseBatch(root, createUnparsableBodyError('batch'))
  const events = readEvents(items as readonly ParsedObject[], payload, slices, leftOut)
  if (!events.ok) return refuseBatch(root, events.error)
  const { found, places } = events.value
  if (found.length === 0) return refuseBatch(root, leftOut!.firstError!)
  return ok({
    historicalMigration: root.historical_migration === true,
    captureInternal: root.capture_internal === true,
    items: found,
    leftOutCount: items.length - found.length,
    isItemised: true,
    placeOf: row => `batch.${places?.[row] ?? row}.`,
    sourceJson: row => sliceText(payload, slices, (places?.[row] ?? row) * slicesPerItem + slice.item),
  })
}

/** @param root null when the text was not parsed. */
function refuseBatch(root: unknown, error: WireError): Result<never, V1BatchRefusal> {
  if (!isObject(root) || !Array.isArray(root.batch)) return err({ error, eventCount: 1 })
  const { batch } = root
  return err({
    error,
    eventCount: Math.max(batch.length, 1),
    ...(batch.length === 1 && { item: refusedItemOf(batch[0]) }),
    ...(root.historical_migration === true && { historicalMigration: true }),
  })
}

/** The bad items that are left out of an itemised batch. */
class LeftOutItems {
  readonly indexes = new Set<number>()
  firstError: WireError | null = null

  add(index: number, error: WireError): void {
    this.indexes.add(index)
    this.firstError ??= error
  }
}

/** The first field that is missing or has a wrong type, or null. */
function findEnvelopeFault(root: ParsedObject): string | null {
  const { created_at: createdAt, batch, historical_migration: historical, capture_internal: internal } = root
  if (typeof createdAt !== 'string') return 'created_at'
  if (historical !== undefined && typeof historical !== 'boolean') return 'historical_migration'
  if (internal !== undefined && internal !== null && typeof internal !== 'boolean') return 'capture_internal'
  return Array.isArray(batch) ? null : 'batch'
}

/** Why the batch fails; null when no item is bad or all bad ones are left out. */
function findItemsFault(items: readonly unknown[], leftOut: LeftOutItems | null): WireError | null {
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    const fault = isObject(item) ? findEventFault(item) : ''
    if (fault === null) continue
    const error = createUnparsableBodyError(fault === '' ? `batch.${index}` : `batch.${index}.${fault}`)
    if (leftOut === null) return error
    leftOut.add(index, error)
  }
  return null
}

function findEventFault(item: ParsedObject): string | null {
  if (typeof item.event !== 'string') return 'event'
  if (typeof item.uuid !== 'string') return 'uuid'
  if (typeof item.distinct_id !== 'string') return 'distinct_id'
  if (typeof item.timestamp !== 'string') return 'timestamp'
  if (!isTextOrAbsent(item.session_id)) return 'session_id'
  return isTextOrAbsent(item.window_id) ? null : 'window_id'
}

/** The answer lists events by their uuids, so each event needs one, and no two may share it. */
function readEvents(
  items: readonly ParsedObject[],
  payload: V1Payload,
  slices: ItemSlices,
  leftOut: LeftOutItems | null,
): Result<{ readonly found: IncomingV1Event[]; readonly places: readonly number[] | null }, WireError> {
  const found: IncomingV1Event[] = []
  const places: number[] | null = leftOut === null ? null : []
  const seen = new Set<string>()
  for (let index = 0; index < items.length; index++) {
    if (leftOut?.indexes.has(index)) continue
    const item = items[index]!
    const sent = (item.uuid as string).trim()
    const uuid = parseUuid(sent)
    if (uuid === null || seen.has(uuid)) {
      const error = createUuidError(sent, uuid, index)
      if (leftOut === null) return err(error)
      leftOut.add(index, error)
      continue
    }
    seen.add(uuid)
    found.push(buildIncomingV1Event(item, uuid, payload, slices, index * slicesPerItem))
    places?.push(index)
  }
  return ok({ found, places })
}

function createUuidError(sent: string, uuid: string | null, index: number): WireError {
  if (uuid !== null) return createDuplicateUuidError(sent, index)
  return sent === '' ? createMissingUuidError(index) : createInvalidUuidError(sent, index)
}

const noProperties: ParsedObject = Object.freeze({})

function buildIncomingV1Event(
  item: ParsedObject,
  uuid: string,
  payload: V1Payload,
  slices: ItemSlices,
  base: number,
): IncomingV1Event {
  const { properties, session_id: sessionId, window_id: windowId, options } = item
  const hasProperties = isObject(properties)
  return {
    kind: 'event',
    name: item.event as string,
    uuid,
    distinctId: (item.distinct_id as string).trim(),
    timestamp: item.timestamp as string,
    sessionId: typeof sessionId === 'string' ? sessionId : null,
    windowId: typeof windowId === 'string' ? windowId : null,
    options: options === undefined ? null : readOptions(options, payload, slices[base + slice.item]!),
    propertiesJson: hasProperties
      ? sliceText(payload, slices, base + slice.properties)
      : properties === undefined
        ? '{}'
        : null,
    properties: hasProperties ? properties : noProperties,
  }
}

/** If a tour's id is an integer that no double holds exactly, its literal is kept. */
function readOptions(options: unknown, { bytes }: V1Payload, itemStart: number): unknown {
  if (!isObject(options) || typeof options.product_tour_id !== 'number') return options
  const [optionsStart] = findMemberSlice(bytes, itemStart, 'options')
  const [start, end] = findMemberSlice(bytes, optionsStart, 'product_tour_id')
  // Changed in place: the object belongs to this request and may be large.
  return Object.assign(options, { product_tour_id: parseNumberOrLiteral(bytes.toString('latin1', start, end)) })
}

function sliceText({ ascii, text, bytes }: V1Payload, slices: ItemSlices, pair: number): string {
  const start = slices[pair]!
  const end = slices[pair + 1]!
  return ascii ? text.substring(start, end) : bytes.toString('utf8', start, end)
}
