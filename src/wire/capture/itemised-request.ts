// A v0 capture payload whose items are judged one by one (`?verbose=1`): what is no event gets a verdict of its own and
// leaves the others alone. JSON, envelope and key refuse the whole request as in `capture-request.ts`.

import type { IncomingEvent, IncomingRequest, ItemFault } from '#core/capture/incoming-event.ts'
import { VerdictCollector } from '#core/capture/item-verdicts.ts'
import { rejectCountMax } from '#core/capture/prepare-events.ts'
import { err, ok, type Result } from '#core/result.ts'
import { type ItemSlices, slice, slicesPerItem } from '../bytes/json-slices.ts'
import type { WireError } from '../wire-error.ts'
import { brokenEnvelope } from './broken-envelope.ts'
import type { CapturePayload } from './capture-body.ts'
import { unknownShape } from './capture-errors.ts'
import type { CaptureParse } from './capture-request.ts'
import { type Fields, faultOfFields, hasName, isObject, listKeyOf, refusedItemOf, uuidOf } from './event-fields.ts'
import { idAllowance, incomingEvent, isPerformanceEvent, textAt } from './incoming-item.ts'
import { type CaptureContext, type ItemList, openItems, openRequest, placesOf } from './open-request.ts'

interface AnyItems extends ItemList {
  /** A single item of `/engage` needs no name. */
  readonly needsName: boolean
}

/** Never answers `no_event_left`. Source: ours; docs/wire/ingestion.md 1.7. */
export function parseItemisedRequest(payload: CapturePayload, context: CaptureContext): CaptureParse {
  const opened = openRequest(payload, context, anyItemsOf)
  if (!opened.ok) return opened
  if (opened.value === 'too_much_work') return ok('too_much_work')
  const { list } = opened.value
  const openedItems = openItems(payload, context, opened.value)
  if (!openedItems.ok) return openedItems
  const { head, slices } = openedItems.value
  const sourceAt = (place: number) =>
    textAt(payload, slices, place * slicesPerItem + slice.item) ?? JSON.stringify(list.items[place])
  const found = judge(list, eventReader(payload, slices, context))
  if (found === 'too_much_work') return ok(found)
  const placeOf = placesOf(list)
  const request: IncomingRequest = {
    ...head,
    events: found.events,
    ...(found.performanceEventCount > 0 && { performanceEventCount: found.performanceEventCount }),
    sourceJson: index => sourceAt(found.places[index]!),
    placeOf: index => placeOf(found.places[index]!),
    itemised: { verdicts: found.verdicts, places: found.places, faults: found.faults, sourceAt },
  }
  return ok(request)
}

function eventReader(payload: CapturePayload, slices: ItemSlices, { structuredIdBytesMax }: CaptureContext) {
  const ids = idAllowance(structuredIdBytesMax)
  return (item: Fields, place: number) => incomingEvent(item, payload, slices, place * slicesPerItem, ids)
}

/** A list of whatever, or one event. What the strict reading refuses for its envelope is refused here too. */
function anyItemsOf(root: unknown, engage: boolean, keyOutside: boolean): Result<AnyItems, WireError> {
  if (Array.isArray(root)) return ok({ items: root, listKey: null, envelope: null, needsName: true })
  if (!isObject(root)) return err(unknownShape(null))
  const listKey = listKeyOf(root, keyOutside)
  if (listKey !== null) return ok({ items: root[listKey] as unknown[], listKey, envelope: root, needsName: true })
  if (engage || hasName(root))
    return ok({ items: [root], listKey: null, envelope: null, isSingle: true, needsName: !engage })
  const fault = faultOfFields(root)
  return err(fault === null ? brokenEnvelope(root, keyOutside) : unknownShape(fault))
}

interface Judged {
  readonly events: readonly IncomingEvent[]
  readonly performanceEventCount: number
  readonly places: readonly number[]
  readonly faults: readonly ItemFault[]
  readonly verdicts: VerdictCollector
}

/** Splits items into events and those that are none, which have their verdicts then. */
function judge(
  { items, needsName }: AnyItems,
  eventAt: (item: Fields, place: number) => ReturnType<typeof incomingEvent>,
): Judged | 'too_much_work' {
  const events: IncomingEvent[] = []
  const places: number[] = []
  const faults: ItemFault[] = []
  const verdicts = new VerdictCollector(items.length)
  let performanceEventCount = 0
  for (let place = 0; place < items.length; place++) {
    const item = items[place]
    const fault = faultOfItem(item, needsName)
    if (fault === null && isPerformanceEvent(item as Fields)) {
      performanceEventCount++
      const of = { index: place, uuid: uuidOf(item as Fields), event: nameOf(item) }
      verdicts.add({ ...of, result: 'drop', reason: 'dropped_performance_event', field: null })
      continue
    }
    const event = fault === null ? eventAt(item as Fields, place) : fault.field
    if (typeof event !== 'string') {
      events.push(event)
      places.push(place)
      continue
    }
    if (event === 'too_much_work') return event
    const { reason, field } = fault ?? { reason: 'invalid_shape', field: event }
    const uuid = isObject(item) && field !== 'uuid' ? uuidOf(item) : null
    verdicts.add({ index: place, uuid, event: nameOf(item), result: 'reject', reason, field: field || null })
    if (faults.length < rejectCountMax) faults.push({ place, reason, field, ...refusedItemOf(item), uuid: uuid ?? '' })
  }
  return { events, performanceEventCount, places, faults, verdicts }
}

/** Why an item is no event, whatever the rules of events say; null when it may be one. */
function faultOfItem(item: unknown, needsName: boolean): { reason: string; field: string } | null {
  if (!isObject(item)) return { reason: 'invalid_shape', field: '' }
  if (needsName && !hasName(item)) {
    const isMissing = item.event === undefined || item.event === null
    return { reason: isMissing ? 'missing_event_name' : 'invalid_shape', field: 'event' }
  }
  const field = faultOfFields(item)
  return field === null ? null : { reason: 'invalid_shape', field }
}

function nameOf(item: unknown): string | null {
  return isObject(item) && hasName(item) ? (item.event as string) : null
}
