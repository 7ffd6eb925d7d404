// Events, read only. A query is cancelled when its caller disconnects; when the store is down, the answer is 503.

import { isUuid } from '#core/events/uuid.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { ok } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventCursor, EventQueries, EventView } from '#ports/events/event-queries.ts'
import { encodeEvent, eventPageSchema, eventSchema } from '#wire/management/events.ts'
import { type Answer, answerFromEventStore, notFoundHere, refusal } from '../kit/answers.ts'
import type { EndpointDeps } from '../kit/endpoint.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from '../kit/endpoint.ts'
import { encodeEventCursor, eventFilters, readEventFilters } from '../kit/event-filters.ts'
import { answerCursorList, encodeRows } from '../kit/full-page.ts'
import { encodeBoundParams } from '../kit/instants.ts'
import { firstPageParams, limitParam } from '../kit/query-params.ts'

type EventsDeps = EndpointDeps & {
  readonly events: Pick<EventQueries, 'listEvents' | 'findEvent'>
  readonly clock: Clock
}

const tag = 'events'

const eventsQuery = { ...eventFilters, limit: limitParam(), ...firstPageParams() }

export function eventsRoutes(deps: EventsDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/events',
      id: 'events_list',
      tag,
      summary:
        'List events, newest first, without a time limit by default. Following `next` neither skips nor repeats any.',
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
      summary: 'Get one event by uuid.',
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

async function listEvents(deps: EventsDeps, call: ProjectCall<typeof eventsQuery, unknown>): Promise<Answer> {
  const { project, query, signal } = call
  const read = readEventFilters(query, { timezone: project.timezone, nowMs: deps.clock.nowMs() })
  if (!read.ok) return refusal(read.error)
  const { filters, bounds } = read.value
  return answerCursorList<EventView, EventCursor>(
    call,
    { cursor: query.cursor, limit: query.limit, pinned: encodeBoundParams(bounds) },
    async (after, limit) => {
      const asked = omitUndefined({ projectId: project.id, ...filters, after, limit })
      const { events, next } = await deps.events.listEvents(asked, signal)
      return ok({ rows: events, next })
    },
    { rows: encodeRows(encodeEvent), cursor: encodeEventCursor },
  )
}
