// A v0 capture payload whose items are judged one by one (`?verbose=1`): what is no event gets a verdict of its own and
// leaves the others alone. JSON, envelope and key are those of `capture-request.ts`, and refuse the whole request as there.

import type { IncomingEvent, IncomingRequest, ItemFault } from '#core/events/incoming-event.ts'
import { VerdictCollector } from '#core/events/item-verdicts.ts'
import { rejectCountMax } from '#core/events/prepare-events.ts'
import { err, ok, type Result } from '#core/result.ts'
import { brokenEnvelope } from './broken-envelope.ts'
import type { CapturePayload } from './capture-body.ts'
import { captureErrors, unknownShape } from './capture-errors.ts'
import {
  type CaptureContext,
  type CaptureParse,
  idAllowance,
  incomingEvent,
  isPerformanceEvent,
  listKeyOf,
  placesOf,
  readRoot,
  refusalOf,
  sentAtOf,
  textAt,
  tokenOf,
} from './capture-request.ts'
import { type Fields, faultOfFields, hasName, isObject, type ListKey, refusedItemOf, uuidOf } from './event-fields.ts'
import { slice, sliceItems, slicesPerItem } from './json-slices.ts'
import type { WireError } from './wire-error.ts'

interface ItemList {
  readonly items: readonly unknown[]
  readonly listKey: ListKey | null
  /** The root is the one item. */
  readonly isSingle?: true
  readonly envelope: Fields | null
  /** A single item of `/engage` needs no name. */
  readonly needsName: boolean
}

/** Never answers `no_event_left`. Source: ours; docs/wire/ingestion.md 1.7. */
export function parseItemisedRequest(payload: CapturePayload, context: CaptureContext): CaptureParse {
  const read = readRoot(payload, context)
  if (!read.ok) return read
  if (read.value === 'too_much_work') return ok('too_much_work')
  const { root } = read.value
  const refuse = refusalOf(root, context)
  const keyOutside = payload.formToken ?? context.fallbackToken
  const list = listOf(root, context.engage, keyOutside !== null)
  if (!list.ok) return refuse(list.error)
  const { items, listKey, envelope } = list.value
  if (items.length === 0) return refuse(captureErrors.emptyBatch)
  if (items.length > context.itemCountMax) return ok('too_much_work')
  const token = tokenOf(items.filter(isObject), envelope, keyOutside)
  if (!token.ok) return refuse(token.error)
  const slices = sliceItems(payload.bytes, listKey, items.length)
  if (slices === null) return refuse(captureErrors.nestedTooDeep)
  const sourceAt = (place: number) =>
    textAt(payload, slices, place * slicesPerItem + slice.item) ?? JSON.stringify(items[place])
  const eventAt = eventReader(payload, slices)
  const found = judge(list.value, eventAt)
  const placeOf = placesOf(list.value)
  const request: IncomingRequest = {
    token: token.value,
    historicalMigration: envelope?.historical_migration === true,
    sentAtMs: sentAtOf(envelope) ?? context.querySentAtMs,
    events: found.events,
    ...(found.performanceEventCount > 0 && { performanceEventCount: found.performanceEventCount }),
    sourceJson: index => sourceAt(found.places[index]!),
    placeOf: index => placeOf(found.places[index]!),
    itemised: { verdicts: found.verdicts, places: found.places, faults: found.faults, sourceAt },
  }
  return ok(request)
}

function eventReader(payload: CapturePayload, slices: NonNullable<ReturnType<typeof sliceItems>>) {
  const ids = idAllowance()
  return (item: Fields, place: number) => incomingEvent(item, payload, slices, place * slicesPerItem, ids)
}

/** A list of whatever, or one event. What the strict reading refuses for its envelope is refused here too. */
function listOf(root: unknown, engage: boolean, keyOutside: boolean): Result<ItemList, WireError> {
  if (Array.isArray(root)) return ok({ items: root, listKey: null, envelope: null, needsName: true })
  if (!isObject(root)) return err(unknownShape(null))
  const listKey = listKeyOf(root, keyOutside)
  if (listKey !== null) return ok({ items: root[listKey] as unknown[], listKey, envelope: root, needsName: true })
  if (engage || hasName(root))
    return ok({ items: [root], listKey: null, envelope: null, isSingle: true, needsName: !engage })
  const fault = faultOfFields(root)
  return err(fault === null ? brokenEnvelope(root, keyOutside) : unknownShape(fault))
}

/** Splits items into events and those that are none, which have their verdicts then. */
function judge(
  { items, needsName }: ItemList,
  eventAt: (item: Fields, place: number) => ReturnType<typeof incomingEvent>,
): {
  events: IncomingEvent[]
  performanceEventCount: number
  places: number[]
  faults: ItemFault[]
  verdicts: VerdictCollector
} {
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
