// What a v0 capture payload says: its shape and the events in it, all of them or none. Types and names are settled here; the
// rules of events are `core/events`.

import type { IncomingEvent, IncomingRequest } from '#core/capture/incoming-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import { slice, slicesPerItem } from '../bytes/json-slices.ts'
import type { WireError } from '../wire-error.ts'
import { brokenEnvelope } from './broken-envelope.ts'
import type { CapturePayload } from './capture-body.ts'
import { hydrationError, unknownShape } from './capture-errors.ts'
import { tokenOf } from './capture-token.ts'
import { type Fields, faultOfFields, faultOfList, hasName, isObject, listKeyOf } from './event-fields.ts'
import { idAllowance, incomingEvent, isPerformanceEvent, textAt } from './incoming-item.ts'
import {
  type CaptureContext,
  type CaptureRefusal,
  type ItemList,
  openItems,
  openRequest,
  placesOf,
} from './open-request.ts'

export type CaptureParse = Result<IncomingRequest | NoEventLeft | 'too_much_work', CaptureRefusal>

/** There were only `$performance_event`s, which are not kept. */
export interface NoEventLeft {
  readonly kind: 'no_event_left'
  /** The key that the request seems to name: it was not checked. */
  readonly token: string | null
  readonly eventCount: number
}

interface EventList extends ItemList {
  readonly items: readonly Fields[]
}

/**
 * In the order of docs/wire/ingestion.md 1.7: JSON, shape, empty batch, `$performance_event`, token.
 * Source: docs/wire/ingestion.md 2; docs/wire/service.md §2.3, §2.5; docs/wire/clients.md 5.2.
 */
export function parseCaptureRequest(payload: CapturePayload, context: CaptureContext): CaptureParse {
  const opened = openRequest(payload, context, eventListOf)
  if (!opened.ok) return opened
  if (opened.value === 'too_much_work') return ok('too_much_work')
  const { list, keyOutside, refuse } = opened.value
  const { items, envelope } = list
  if (items.every(isPerformanceEvent)) {
    const named = tokenOf(list, keyOutside)
    return ok({ kind: 'no_event_left', token: named.ok ? named.value : null, eventCount: items.length })
  }
  const openedItems = openItems(payload, context, opened.value)
  if (!openedItems.ok) return openedItems
  const { head, slices } = openedItems.value
  const placeOf = placesOf(list)
  const kept: number[] = []
  const events: IncomingEvent[] = []
  const ids = idAllowance(context.structuredIdBytesMax)
  for (let index = 0; index < items.length; index++) {
    const item = items[index]!
    if (isPerformanceEvent(item)) continue
    kept.push(index)
    const event = incomingEvent(item, payload, slices, index * slicesPerItem, ids)
    if (event === 'too_much_work') return ok(event)
    // An item that is no event breaks its envelope, like one without a name.
    if (event === 'offset' && envelope !== null) return refuse(hydrationError('invalid_shape', placeOf(index) + event))
    if (typeof event === 'string') return refuse(unknownShape(placeOf(index) + event))
    events.push(event)
  }
  return ok({
    ...head,
    events,
    ...(events.length < items.length && { performanceEventCount: items.length - events.length }),
    sourceJson: index => textAt(payload, slices, kept[index]! * slicesPerItem + slice.item) ?? '',
    placeOf: index => placeOf(kept[index]!),
  })
}

/** The four shapes, first match wins. Source: docs/wire/ingestion.md 2.1. */
function eventListOf(root: unknown, engage: boolean, keyOutside: boolean): Result<EventList, WireError> {
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
