// Replays, read only: what came for which session, and the snapshots themselves while they last. There is no player.

import Type from 'typebox'
import { unpackItems } from '#core/capture/packed-items.ts'
import { isUuid } from '#core/events/uuid.ts'
import { err, ok } from '#core/result.ts'
import { type ReplayCursor, replayRetentionDays } from '#ports/event-store.ts'
import {
  encodeReplayMessage,
  encodeReplayMessageWithItems,
  replayMessagePageSchema,
  replayMessageWithItemsSchema,
} from '#wire/management/replay-messages.ts'
import { type Answer, answer, answerFromEventStore, invalid, notFoundHere, refusal } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from './kit/endpoint.ts'
import { pinnedBounds, readBound } from './kit/instants.ts'
import { addressWith } from './kit/page.ts'
import { optional, pageParams, type QueryParam, textParam } from './kit/query-params.ts'

const tag = 'replay'
const scope = 'session_recording:read'
const timeDescription = 'ISO 8601 time, date in the project’s zone, or a span such as -7d; the bound itself is outside.'

const listQuery = {
  session_id: textParam('Session that was recorded.'),
  distinct_id: textParam('Distinct id that it was recorded for.'),
  after: textParam(`Only later replays. ${timeDescription}`),
  before: textParam(`Only earlier replays. ${timeDescription}`),
  limit: pageParams().limit,
  cursor: cursorParam(),
}

export function replayMessagesRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/replay_messages',
      id: 'replay_messages_list',
      tag,
      summary: `Requests that brought snapshots of sessions, newest first; kept for ${replayRetentionDays.row} days.`,
      scope,
      query: listQuery,
      success: { status: 200, schema: replayMessagePageSchema },
      handle: call => answerFromEventStore(() => listReplays(deps, call)),
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/replay_messages/:uuid',
      id: 'replay_messages_retrieve',
      tag,
      summary: `One of them with its snapshots, which are kept for ${replayRetentionDays.items} days.`,
      scope,
      success: { status: 200, schema: replayMessageWithItemsSchema },
      handle: ({ project, params, signal }) =>
        answerFromEventStore(async () => {
          const uuid = params.uuid!
          const found = isUuid(uuid) ? await deps.events.findReplay(project.id, uuid.toLowerCase(), signal) : null
          if (found === null) return refusal(notFoundHere)
          const { replay, items } = found
          const json = items === null ? null : await unpackItems(items, replay.itemsBytes)
          return { status: 200, json: encodeReplayMessageWithItems(replay, json) }
        }),
    }),
  ]
}

async function listReplays(deps: ManagementDeps, call: ProjectCall<typeof listQuery, unknown>): Promise<Answer> {
  const { project, query, signal, request } = call
  const zone = { timezone: project.timezone, nowMs: deps.clock.nowMs() }
  const after = readBound(query.after, 'after', zone)
  if (!after.ok) return refusal(after.error)
  const before = readBound(query.before, 'before', zone)
  if (!before.ok) return refusal(before.error)
  const { replays, next } = await deps.events.listReplays(
    {
      projectId: project.id,
      limit: query.limit,
      ...(query.session_id === undefined ? {} : { sessionId: query.session_id }),
      ...(query.distinct_id === undefined ? {} : { distinctId: query.distinct_id }),
      ...(after.value === undefined ? {} : { afterMs: after.value }),
      ...(before.value === undefined ? {} : { beforeMs: before.value }),
      ...(query.cursor === undefined ? {} : { after: query.cursor }),
    },
    signal,
  )
  const pinned = pinnedBounds(after.value, before.value)
  const nextAddress =
    next === null ? null : addressWith(request, { ...pinned, cursor: `${next.timestampMs}_${next.uuid}` })
  return answer(200, { next: nextAddress, results: replays.map(encodeReplayMessage) })
}

function cursorParam(): QueryParam<ReplayCursor | undefined> {
  return optional(Type.String({ description: 'Where the page before ended; part of `next`.' }), (text, name) => {
    const match = /^(-?\d{1,13})_([0-9a-f-]{36})$/.exec(text)
    if (match === null || !isUuid(match[2]!)) return err(invalid(name, 'Not a cursor; follow `next` as it is.'))
    return ok({ timestampMs: Number(match[1]), uuid: match[2]! })
  })
}
