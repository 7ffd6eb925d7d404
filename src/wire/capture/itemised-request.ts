// Reads a v0 capture payload whose items are judged one by one (`?verbose=1`): an item that is not an event gets its own
// row and does not affect other items. Faults of JSON, envelope and key refuse the whole request, as in
// `capture-request.ts`.

import type { IncomingItem, ItemFault } from '#core/capture/incoming-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import { slice, slicesPerItem } from '../bytes/json-slices.ts'
import type { WireError } from '../wire-error.ts'
import { findEnvelopeError } from './broken-envelope.ts'
import type { CapturePayload } from './capture-body.ts'
import { createUnknownShapeError } from './capture-errors.ts'
import type { CaptureParse } from './capture-request.ts'
import { findFieldsFault, hasEventName, isObject, listKeyOf, type ParsedObject, refusedItemOf } from './event-fields.ts'
import {
  buildIncomingEvent,
  buildPerformanceEvent,
  createIdByteBudget,
  isPerformanceEvent,
  readSliceText,
} from './incoming-item.ts'
import {
  type CaptureContext,
  createItemPathPrefix,
  type ItemList,
  parseRequestItems,
  readRequestHeadAndSlices,
} from './open-request.ts'

interface AnyItems extends ItemList {
  /** A single item of `/engage` needs no name. */
  readonly needsName: boolean
}

/** Never returns `no_event_left`. Source: ours; docs/wire/ingestion.md 1.7. */
export function parseItemisedRequest(payload: CapturePayload, context: CaptureContext): CaptureParse {
  const opened = parseRequestItems(payload, context, readAnyItems)
  if (!opened.ok) return opened
  if (opened.value === 'too_much_work') return ok('too_much_work')
  const { list } = opened.value
  const openedItems = readRequestHeadAndSlices(payload, context, opened.value)
  if (!openedItems.ok) return openedItems
  const { head, slices } = openedItems.value
  const ids = createIdByteBudget(context.structuredIdBytesMax)
  const items: IncomingItem[] = []
  for (let row = 0; row < list.items.length; row++) {
    const item = toIncomingItem(list.items[row], list.needsName, fields =>
      buildIncomingEvent(fields, payload, slices, row * slicesPerItem, ids),
    )
    if (item === 'too_much_work') return ok(item)
    items.push(item)
  }
  return ok({
    ...head,
    items,
    isItemised: true,
    sourceJson: row =>
      readSliceText(payload, slices, row * slicesPerItem + slice.item) ?? JSON.stringify(list.items[row]),
    placeOf: createItemPathPrefix(list),
  })
}

/** Accepts a list of anything, or one event. A root whose envelope `capture-request.ts` refuses is refused here too. */
function readAnyItems(root: unknown, engage: boolean, keyOutside: boolean): Result<AnyItems, WireError> {
  if (Array.isArray(root)) return ok({ items: root, listKey: null, envelope: null, needsName: true })
  if (!isObject(root)) return err(createUnknownShapeError(null))
  const listKey = listKeyOf(root, keyOutside)
  if (listKey !== null) return ok({ items: root[listKey] as unknown[], listKey, envelope: root, needsName: true })
  if (engage || hasEventName(root))
    return ok({ items: [root], listKey: null, envelope: null, isSingle: true, needsName: !engage })
  const fault = findFieldsFault(root)
  return err(fault === null ? findEnvelopeError(root, keyOutside) : createUnknownShapeError(fault))
}

function toIncomingItem(
  item: unknown,
  needsName: boolean,
  eventOf: (item: ParsedObject) => ReturnType<typeof buildIncomingEvent>,
): IncomingItem | 'too_much_work' {
  const fault = findItemFault(item, needsName)
  if (fault !== null) return createItemFault(item, fault.reason, fault.field)
  if (isPerformanceEvent(item as ParsedObject)) return buildPerformanceEvent(item as ParsedObject)
  const event = eventOf(item as ParsedObject)
  return event === 'distinct_id' || event === 'offset' ? createItemFault(item, 'invalid_shape', event) : event
}

function createItemFault(item: unknown, reason: ItemFault['reason'], field: string): ItemFault {
  const { uuid, name, distinctId } = refusedItemOf(item)
  const isNameless = !isObject(item) || !hasEventName(item)
  return { kind: 'fault', reason, field, uuid: field === 'uuid' ? '' : uuid, name, distinctId, isNameless }
}

/** Why an item cannot be an event, whatever the rules for events say; null when it may be one. */
function findItemFault(item: unknown, needsName: boolean): Pick<ItemFault, 'reason' | 'field'> | null {
  if (!isObject(item)) return { reason: 'invalid_shape', field: '' }
  if (needsName && !hasEventName(item)) {
    const isMissing = item.event === undefined || item.event === null
    return { reason: isMissing ? 'missing_event_name' : 'invalid_shape', field: 'event' }
  }
  const field = findFieldsFault(item)
  return field === null ? null : { reason: 'invalid_shape', field }
}
