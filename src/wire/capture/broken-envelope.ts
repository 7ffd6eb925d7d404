// Finds the fault of an object that is neither an event nor an envelope. PostHog's parser tries several shapes, and the
// last one, `engage`, has no required field, so every object matches it. PostHog therefore answers all such objects
// with one text: that an event has no name. Our `code` and `attr` name the real fault.
// Source: docs/wire/ingestion.md 1.7, 2.1.

import type { WireError } from '../wire-error.ts'
import { createHydrationError } from './capture-errors.ts'
import {
  findEnvelopeFault,
  findListFault,
  hasEnvelopeKey,
  isObject,
  type ListKey,
  type ParsedObject,
} from './event-fields.ts'

/**
 * @param root an object that has no name and no fault in the fields of an event.
 * @param keyOutside whether the request has a key outside its body.
 */
export function findEnvelopeError(root: ParsedObject, keyOutside: boolean): WireError {
  if (!isAbsent(root.event)) return createHydrationError('invalid_shape', 'event')
  const listKey = guessListKey(root)
  if (listKey === null) return namelessEvent
  const items = root[listKey]
  if (!Array.isArray(items)) return createHydrationError('invalid_shape', listKey)
  const field = findEnvelopeFault(root)
  if (field !== null) return createHydrationError('invalid_shape', field)
  if (!keyOutside && !hasEnvelopeKey(root, listKey)) return createHydrationError('missing_api_key', 'api_key')
  const place = findListFault(items, `${listKey}.`)
  return createHydrationError(isNameMissing(items, place) ? 'missing_event_name' : 'invalid_shape', place ?? 'event')
}

/**
 * The text stays PostHog's, because clients compare it. Other fields, such as a list under `events`, are not examined.
 */
const namelessEvent: WireError = {
  ...createHydrationError('missing_event_name', 'event'),
  hint: 'The name of an event is in `event`; a list of events is in `batch`.',
}

/** Finds the fault of an object sent to `/s/`, which accepts no envelope. Source: docs/wire/ingestion.md 1.8. */
export function findBareEventError(root: ParsedObject): WireError {
  if (!isAbsent(root.event)) return createHydrationError('invalid_shape', 'event')
  const listKey = guessListKey(root)
  return listKey === null
    ? createHydrationError('missing_event_name', 'event')
    : createHydrationError('invalid_shape', listKey)
}

function guessListKey(root: ParsedObject): ListKey | null {
  if (root.batch !== undefined) return 'batch'
  return Array.isArray(root.data) ? 'data' : null
}

/** @param place the place of the first item that is not an event, such as `batch.1.event`. */
function isNameMissing(items: readonly unknown[], place: string | null): boolean {
  const [, index, field] = place?.split('.') ?? []
  const item = items[Number(index)]
  return field === 'event' && isObject(item) && isAbsent(item.event)
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}
