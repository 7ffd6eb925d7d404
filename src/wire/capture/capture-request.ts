// Reads a v0 capture payload: its shape and its events, all of them or none. This file checks types and names; the
// rules for events are in `core/capture`.

import type { IncomingItem, IncomingRequest } from '#core/capture/incoming-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import { slice, slicesPerItem } from '../bytes/json-slices.ts'
import type { WireError } from '../wire-error.ts'
import { findEnvelopeError } from './broken-envelope.ts'
import type { CapturePayload } from './capture-body.ts'
import { createHydrationError, createUnknownShapeError } from './capture-errors.ts'
import { findRequestToken } from './capture-token.ts'
import { findFieldsFault, findListFault, hasEventName, isObject, listKeyOf, type ParsedObject } from './event-fields.ts'
import {
  buildIncomingEvent,
  buildPerformanceEvent,
  createIdByteBudget,
  isPerformanceEvent,
  readSliceText,
} from './incoming-item.ts'
import {
  type CaptureContext,
  type CaptureRefusal,
  createItemPathPrefix,
  type ItemList,
  parseRequestItems,
  readRequestHeadAndSlices,
} from './open-request.ts'

export type CaptureParse = Result<IncomingRequest | NoEventLeft | 'too_much_work', CaptureRefusal>

/** The request held only `$performance_event`s, which are not kept. */
export interface NoEventLeft {
  readonly kind: 'no_event_left'
  /** The request's key, which was not looked up; null when the request has no valid key. */
  readonly token: string | null
  readonly eventCount: number
}

interface EventList extends ItemList {
  readonly items: readonly ParsedObject[]
}

/**
 * Checks in the order of docs/wire/ingestion.md 1.7: JSON, shape, empty batch, `$performance_event`, token.
 * Source: docs/wire/ingestion.md 2; docs/wire/service.md §2.3, §2.5; docs/wire/clients.md 5.2.
 */
export function parseCaptureRequest(payload: CapturePayload, context: CaptureContext): CaptureParse {
  const opened = parseRequestItems(payload, context, findEventList)
  if (!opened.ok) return opened
  if (opened.value === 'too_much_work') return ok('too_much_work')
  const { list, keyOutside, refuse } = opened.value
  const { items, envelope } = list
  if (items.every(isPerformanceEvent)) {
    const named = findRequestToken(list, keyOutside)
    return ok({ kind: 'no_event_left', token: named.ok ? named.value : null, eventCount: items.length })
  }
  const openedItems = readRequestHeadAndSlices(payload, context, opened.value)
  if (!openedItems.ok) return openedItems
  const { head, slices } = openedItems.value
  const placeOf = createItemPathPrefix(list)
  const found: IncomingItem[] = []
  const ids = createIdByteBudget(context.structuredIdBytesMax)
  for (let row = 0; row < items.length; row++) {
    const item = items[row]!
    const event = isPerformanceEvent(item)
      ? buildPerformanceEvent(item)
      : buildIncomingEvent(item, payload, slices, row * slicesPerItem, ids)
    if (event === 'too_much_work') return ok(event)
    // An item with a fractional or too large offset is not an event. It makes the whole envelope invalid, like an item
    // without a name.
    if (event === 'offset' && envelope !== null)
      return refuse(createHydrationError('invalid_shape', placeOf(row) + event))
    if (typeof event === 'string') return refuse(createUnknownShapeError(placeOf(row) + event))
    found.push(event)
  }
  return ok({
    ...head,
    items: found,
    isItemised: false,
    sourceJson: row => readSliceText(payload, slices, row * slicesPerItem + slice.item) ?? '',
    placeOf,
  })
}

/** Tries the four shapes; the first match wins. Source: docs/wire/ingestion.md 2.1. */
function findEventList(root: unknown, engage: boolean, keyOutside: boolean): Result<EventList, WireError> {
  if (Array.isArray(root)) {
    const fault = findListFault(root, '')
    return fault === null
      ? ok({ items: root as ParsedObject[], listKey: null, envelope: null })
      : err(createUnknownShapeError(fault))
  }
  if (!isObject(root)) return err(createUnknownShapeError(null))
  const listKey = listKeyOf(root, keyOutside)
  if (listKey !== null) {
    const items = root[listKey] as unknown[]
    if (findListFault(items, `${listKey}.`) === null)
      return ok({ items: items as ParsedObject[], listKey, envelope: root })
  }
  const fault = findFieldsFault(root)
  if (fault !== null) return err(createUnknownShapeError(fault))
  if (!hasEventName(root) && !engage) return err(findEnvelopeError(root, keyOutside))
  return ok({ items: [root], listKey: null, envelope: null, isSingle: true })
}
