// The live view: a response that stays open and shows a project's events as they are accepted. The service decides
// which watcher gets which event; this file handles the query, checks that the key stays valid, and writes to the
// socket.
// Source: ours, docs/operating/live-view.md.

import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import Type from 'typebox'
import { type Lane, lanes } from '#core/events/captured-event.ts'
import { err, ok } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { LiveRefusal } from '#services/live/live-events.ts'
import type { LiveReader } from '#services/live/live-watcher.ts'
import { encodeLiveReady, type LiveReady } from '#wire/live/live-events.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { type Answer, createInvalidInputError, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes, type StreamAnswer } from '../kit/endpoint.ts'
import { propertiesParam } from '../kit/property-filters.ts'
import { addDefaultValue, booleanParam, type QueryParam, textListParam } from '../kit/query-params.ts'
import { findAccessLossReason, streamHeaders } from '../kit/stream-answers.ts'

const scope = 'query:read'
const contentType = 'text/event-stream'
/** How many events per second one watcher is shown; further events are only counted for the watcher. */
export const liveEventsPerSecondMax = 200
/** How long the connection stays open after the last message, for a client that is still reading. */
const lingerMs = 2_000

const liveQuery = {
  event: textListParam('Only events with this name. Repeat the parameter for several names.'),
  distinct_id: textListParam('Only events with this distinct id. Repeat the parameter for several ids.'),
  lane: lanesParam(),
  historical: addDefaultValue(booleanParam('Include imported events, in all lanes or in those of `lane`.'), false),
  properties: propertiesParam(),
  rejected: addDefaultValue(booleanParam('Whether to include rejects. Default: true.'), true),
}

export function liveEventsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /events/live',
    id: 'events_live',
    summary: 'Stream events as they are accepted, as server-sent events, until the client disconnects.',
    scope,
    group: 'live',
    query: liveQuery,
    success: {
      status: 200,
      contentType,
      schema: Type.String({
        description: 'Messages `ready`, `event`, `rejected`, `skipped` and `end`, each with JSON data.',
      }),
    },
    handle: call => answerLiveEvents(deps, call),
  })
}

async function answerLiveEvents(
  deps: ManagementDeps,
  call: ProjectCall<typeof liveQuery, unknown>,
): Promise<Answer | StreamAnswer> {
  const { project, query, caller, request, signal } = call
  if (request.method === 'HEAD')
    return { stream: reply => void reply.code(200).header('content-type', contentType).send() }
  const entered = await nullIfLogFails(() =>
    deps.liveEvents.enter({
      projectId: project.id,
      filter: {
        events: toSetOrNull(query.event),
        distinctIds: toSetOrNull(query.distinct_id),
        lanes: query.lane ?? (query.historical ? allLanes : liveLanes),
        imports: query.historical || query.lane?.has('historical') === true,
        properties: query.properties ?? [],
        rejected: query.rejected,
      },
      accessKey: caller.id,
      findEndReason: () => findAccessLossReason(deps, call, scope),
    }),
  )
  if (entered === null) return refusal(logUnavailable)
  if (!entered.ok) return refusal(refusals[entered.error])
  const place = entered.value
  if (signal.aborted) place.leave()
  else signal.addEventListener('abort', place.leave, { once: true })
  return {
    stream: reply => {
      // From here on we write the response ourselves: Fastify would wait for a body.
      reply.hijack()
      place.watch(createLiveReader(reply.raw, reply.getHeaders() as OutgoingHttpHeaders, project))
    },
  }
}

function createLiveReader(
  response: ServerResponse,
  headers: OutgoingHttpHeaders,
  project: LiveReady['project'],
): LiveReader {
  return {
    begin: offsets => {
      response.writeHead(200, {
        ...headers,
        'content-type': contentType,
        ...streamHeaders,
        connection: 'close',
      })
      response.write(encodeLiveReady({ project, offsets, eventsPerSecondMax: liveEventsPerSecondMax }))
    },
    write: (messages, taken) => {
      response.cork()
      for (const [index, message] of messages.entries())
        if (index < messages.length - 1) response.write(message)
        else response.write(message, taken)
      response.uncork()
    },
    end: last => {
      response.end(last)
      const cut = setTimeout(() => response.destroy(), lingerMs).unref()
      response.once('close', () => clearTimeout(cut))
    },
    drop: () => void response.destroy(),
  }
}

const allLanes: ReadonlySet<Lane> = new Set(lanes)
const liveLanes: ReadonlySet<Lane> = new Set(lanes.filter(lane => lane !== 'historical'))

/** Lanes come from a fixed list, so commas can separate them; event names may contain commas. */
function lanesParam(): QueryParam<ReadonlySet<Lane> | undefined> {
  const names = textListParam(
    `Only events in these lanes, comma-separated: ${lanes.join(', ')}. Default: all but historical.`,
  )
  const readAll = (texts: readonly string[], name: string) => {
    const given = new Set(texts.flatMap(text => text.split(',')).map(text => text.trim()))
    const chosen = new Set(lanes.filter(lane => given.has(lane)))
    if (chosen.size < given.size)
      return err(createInvalidInputError(name, `Must be one or more of ${lanes.join(', ')}.`))
    return ok(chosen.size === 0 ? undefined : chosen)
  }
  return { ...names, readAll, read: (text, name) => readAll(text === undefined ? [] : [text], name) }
}

function toSetOrNull(texts: readonly string[] | undefined): ReadonlySet<string> | null {
  return texts === undefined ? null : new Set(texts)
}

async function nullIfLogFails<T>(question: () => Promise<T>): Promise<T | null> {
  try {
    return await question()
  } catch (error) {
    if (error instanceof PortError && error.port === 'event-log') return null
    throw error
  }
}

const logUnavailable = wireError(503, 'log_unavailable', 'The log is unavailable. Try again.')
const tooManyViewsError = (where: string) =>
  wireError(
    503,
    'too_many_live_views',
    `The maximum number of live views ${where} is open. Close one, or try again later.`,
  )
const refusals: Record<LiveRefusal, WireError> = {
  closed: wireError(503, 'stopping', 'This instance is shutting down. Try again.'),
  full: tooManyViewsError('of this process'),
  project_full: tooManyViewsError('of this project'),
}
