// Read-only access to events. A query is cancelled when its caller disconnects; when the store is down, the answer is 503.

import { isUuid } from '#core/events/uuid.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { ok } from '#core/result.ts'
import type { EventCursor, EventView } from '#ports/events/event-queries.ts'
import { encodeEvent, eventPageSchema, eventSchema } from '#wire/management/events.ts'
import { type Answer, answerFromEventStore, notFoundHere, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from '../kit/endpoint.ts'
import { encodeEventCursor, eventFilters, readEventFilters } from '../kit/event-filters.ts'
import { answerWithJob, importJobParam } from '../kit/import-job-param.ts'
import { encodeTimeBoundParams } from '../kit/instants.ts'
import { answerCursorList, encodeRows } from '../kit/list-answers.ts'
import { limitParam, unsupportedOffsetParams } from '../kit/query-params.ts'

const eventsQuery = { ...eventFilters, ...importJobParam, limit: limitParam(), ...unsupportedOffsetParams() }

export function eventsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /events',
      id: 'events_list',
      summary:
        'List events, newest first, without a time limit by default. Following `next` neither skips nor repeats any.',
      scope: 'query:read',
      query: eventsQuery,
      success: { status: 200, schema: eventPageSchema },
      handle: call => answerWithJob(deps, call, job => answerFromEventStore(() => listEvents(deps, call, job?.id))),
    }),
    ...projectRoutes(deps, {
      route: 'GET /events/:uuid',
      id: 'events_retrieve',
      summary: 'Get one event by uuid.',
      scope: 'query:read',
      query: importJobParam,
      success: { status: 200, schema: eventSchema },
      handle: call =>
        answerWithJob(deps, call, job =>
          answerFromEventStore(async () => {
            const uuid = call.params.uuid!
            const seen = omitUndefined({ projectId: call.project.id, importJobId: job?.id })
            const event = isUuid(uuid) ? await deps.events.findEvent(seen, uuid.toLowerCase(), call.signal) : null
            return event === null ? refusal(notFoundHere) : { status: 200, json: encodeEvent(event) }
          }),
        ),
    }),
  ]
}

async function listEvents(
  deps: ManagementDeps,
  call: ProjectCall<typeof eventsQuery, unknown>,
  importJobId: number | undefined,
): Promise<Answer> {
  const { project, query, signal } = call
  const read = readEventFilters(query, { timezone: project.timezone, nowMs: deps.clock.nowMs() })
  if (!read.ok) return refusal(read.error)
  const { filters, bounds } = read.value
  return answerCursorList<EventView, EventCursor>(
    call,
    { cursor: query.cursor, limit: query.limit, pinned: encodeTimeBoundParams(bounds) },
    async (after, limit) => {
      const asked = omitUndefined({ projectId: project.id, importJobId, ...filters, after, limit })
      const { events, next } = await deps.events.listEvents(asked, signal)
      return ok({ rows: events, next })
    },
    { rows: encodeRows(encodeEvent), cursor: encodeEventCursor },
  )
}
