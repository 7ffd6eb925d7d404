// Events, read only. A query that its caller gave up is cancelled; a store that is down is a 503.

import Type from 'typebox'
import { isUuid } from '#core/events/uuid.ts'
import { err, ok } from '#core/result.ts'
import type { EventCursor } from '#ports/event-store.ts'
import { encodeEvent, eventPageSchema, eventSchema } from '#wire/management/management.ts'
import {
  type Answer,
  answerFromEventStore,
  invalid,
  invalidInput,
  longListAnswer,
  notFoundHere,
  refusal,
} from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from './kit/endpoint.ts'
import { pinnedBounds, readBound } from './kit/instants.ts'
import { addressWith } from './kit/page.ts'
import { propertiesParam, readJson } from './kit/property-filters.ts'
import { optional, type QueryParam, textParam, uuidParam, wholeNumberParam, withDefault } from './kit/query-params.ts'

const tag = 'events'
const limitMax = 1_000
/** The event store compares what tells events apart as 64 bits. */
const uint64Max = 2n ** 64n - 1n

const timeDescription = 'ISO 8601 time, date in the project’s zone, or a span such as -7d; the bound itself is outside.'
const limit = withDefault(
  wholeNumberParam({
    description: `Events per page, 100 unless given, at most ${limitMax}.`,
    minimum: 1,
    clampTo: limitMax,
  }),
  100,
)

const eventsQuery = {
  event: textParam('Name of the event.'),
  distinct_id: textParam('Distinct id that the event was sent with.'),
  person_id: uuidParam('Person that the event belongs to today.'),
  uuid: uuidParam('Uuid of the event.'),
  after: textParam(`Only later events. ${timeDescription} Without it, all of them.`),
  before: textParam(`Only earlier events. ${timeDescription}`),
  properties: propertiesParam(),
  orderBy: orderParam(),
  limit,
  cursor: cursorParam(),
}

export function eventsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/events',
      id: 'events_list',
      tag,
      summary: 'Events, newest first, of all times unless bounded. `next` neither skips nor repeats.',
      scope: 'query:read',
      query: eventsQuery,
      success: { status: 200, schema: eventPageSchema },
      handle: call => answerFromEventStore(() => listEvents(deps, call)),
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/events/:uuid',
      id: 'events_retrieve',
      tag,
      summary: 'One event by uuid.',
      scope: 'query:read',
      success: { status: 200, schema: eventSchema },
      handle: ({ project, params, signal }) =>
        answerFromEventStore(async () => {
          const uuid = params.uuid!
          const event = isUuid(uuid) ? await deps.events.findEvent(project.id, uuid.toLowerCase(), signal) : null
          return event === null ? refusal(notFoundHere) : { status: 200, json: encodeEvent(event) }
        }),
    }),
  ]
}

async function listEvents(deps: ManagementDeps, call: ProjectCall<typeof eventsQuery, unknown>): Promise<Answer> {
  const { project, query, signal, request } = call
  const zone = { timezone: project.timezone, nowMs: deps.clock.nowMs() }
  const after = readBound(query.after, 'after', zone)
  if (!after.ok) return refusal(after.error)
  const before = readBound(query.before, 'before', zone)
  if (!before.ok) return refusal(before.error)
  const { events, next } = await deps.events.listEvents(
    definedOf({
      projectId: project.id,
      event: query.event,
      distinctId: query.distinct_id,
      personId: query.person_id,
      uuid: query.uuid,
      afterMs: after.value,
      beforeMs: before.value,
      properties: query.properties,
      descending: query.orderBy !== 'timestamp',
      after: query.cursor,
      limit: query.limit,
    }),
    signal,
  )
  const pinned = pinnedBounds(after.value, before.value)
  const nextAddress = next === null ? null : addressWith(request, { ...pinned, cursor: encodeCursor(next) })
  return longListAnswer({ next: nextAddress }, events, encodeEvent)
}

function orderParam(): QueryParam<'timestamp' | '-timestamp' | undefined> {
  const description = '["-timestamp"] (newest first, as without it) or ["timestamp"].'
  return optional(Type.String({ description }), (text, name) => {
    const list = text.startsWith('[') ? readJson(text) : [text]
    const [order, ...others] = Array.isArray(list) ? list : []
    if ((order === 'timestamp' || order === '-timestamp') && others.length === 0) return ok(order)
    return err(invalidInput(name, 'Must be ["-timestamp"] or ["timestamp"].'))
  })
}

function cursorParam(): QueryParam<EventCursor | undefined> {
  return optional(Type.String({ description: 'Where the page before ended; part of `next`.' }), (text, name) => {
    const match = /^(-?\d{1,13})_([0-9a-f-]{36})_(\d{1,20})$/.exec(text)
    if (match === null || !isUuid(match[2]!) || BigInt(match[3]!) > uint64Max)
      return err(invalid(name, 'Not a cursor; follow `next` as it is.'))
    return ok({ timestampMs: Number(match[1]), uuid: match[2]!, tieBreak: match[3]! })
  })
}

function encodeCursor({ timestampMs, uuid, tieBreak }: EventCursor): string {
  return `${timestampMs}_${uuid}_${tieBreak}`
}

/** Without the keys whose value is undefined. */
function definedOf<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
}
