// The filters of events, for pages and for exports alike.

import Type from 'typebox'
import { isUuid } from '#core/events/uuid.ts'
import { err, ok } from '#core/result.ts'
import type { EventCursor } from '#ports/events/event-queries.ts'
import { createInvalidInputError } from './answers.ts'
import { readTimeBounds, timeBoundParams, type Zone } from './instants.ts'
import { parseJsonOrUndefined, propertiesParam } from './property-filters.ts'
import { cursorParam, optionalParam, type QueryParam, type QueryValues, textParam, uuidParam } from './query-params.ts'

/** A cursor's `tieBreak` is an unsigned 64-bit number in the event store. */
const uint64Max = 2n ** 64n - 1n

export const eventFilters = {
  event: textParam('Event name.'),
  distinct_id: textParam('Distinct id the event was sent with.'),
  person_id: uuidParam('Person the event currently belongs to.'),
  uuid: uuidParam('Event uuid.'),
  ...timeBoundParams('events', ' Default: all events.'),
  properties: propertiesParam(),
  orderBy: orderParam(),
  cursor: cursorParam(parseEventCursor),
}

/** The filters as the event store takes them, and the time bounds separately; a filter that is not set is undefined. */
export function readEventFilters(query: Omit<QueryValues<typeof eventFilters>, 'cursor'>, zone: Zone) {
  const bounds = readTimeBounds(query, zone)
  if (!bounds.ok) return bounds
  const filters = {
    event: query.event,
    distinctId: query.distinct_id,
    personId: query.person_id,
    uuid: query.uuid,
    ...bounds.value,
    properties: query.properties,
    descending: query.orderBy !== 'timestamp',
  }
  return ok({ filters, bounds: bounds.value })
}

function orderParam(): QueryParam<'timestamp' | '-timestamp' | undefined> {
  const description = '["-timestamp"] (newest first, the default) or ["timestamp"].'
  return optionalParam(Type.String({ description }), (text, name) => {
    const list = text.startsWith('[') ? parseJsonOrUndefined(text) : [text]
    const [order, ...others] = Array.isArray(list) ? list : []
    if ((order === 'timestamp' || order === '-timestamp') && others.length === 0) return ok(order)
    return err(createInvalidInputError(name, 'Must be ["-timestamp"] or ["timestamp"].'))
  })
}

/** Reads the cursor of a list of events; null if the text is not a cursor. */
export function parseEventCursor(text: string): EventCursor | null {
  const match = /^(-?\d{1,13})_([0-9a-f-]{36})_(\d{1,20})$/.exec(text)
  if (match === null || !isUuid(match[2]!) || BigInt(match[3]!) > uint64Max) return null
  return { timestampMs: Number(match[1]), uuid: match[2]!, tieBreak: match[3]! }
}

export function encodeEventCursor({ timestampMs, uuid, tieBreak }: EventCursor): string {
  return `${timestampMs}_${uuid}_${tieBreak}`
}
