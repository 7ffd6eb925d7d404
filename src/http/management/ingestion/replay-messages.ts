// Recordings, read only: the messages of each session, and their snapshots until they expire. There is no player.

import Type from 'typebox'
import { unpackItems } from '#core/capture/packed-items.ts'
import { isUuid } from '#core/events/uuid.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok } from '#core/result.ts'
import type { RecordingView } from '#ports/events/recording-store.ts'
import { type RecordingCursor, recordingRetentionDays } from '#ports/events/recording-store.ts'
import {
  encodeReplayMessage,
  encodeReplayMessageWithItems,
  replayMessagePageSchema,
  replayMessageWithItemsSchema,
} from '#wire/management/replay-messages.ts'
import { type Answer, answerFromEventStore, invalid, notFoundHere, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from '../kit/endpoint.ts'
import { answerCursorList, encodeObjects } from '../kit/full-page.ts'
import { encodeBoundParams, readBounds } from '../kit/instants.ts'
import { firstPageParams, limitParam, optionalParam, type QueryParam, textParam } from '../kit/query-params.ts'

const tag = 'replay'
const scope = 'session_recording:read'
const timeDescription = 'ISO 8601 time, date in the project’s time zone, or a span such as -7d; exclusive.'

const listQuery = {
  session_id: textParam('Id of the recorded session.'),
  distinct_id: textParam('Distinct id of the recording.'),
  after: textParam(`Only recordings after this time. ${timeDescription}`),
  before: textParam(`Only recordings before this time. ${timeDescription}`),
  limit: limitParam(),
  ...firstPageParams(),
  cursor: cursorParam(),
}

export function replayMessagesRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /replay_messages',
      id: 'replay_messages_list',
      tag,
      summary: `List requests with session recording snapshots, newest first. Kept for ${recordingRetentionDays.row} days.`,
      scope,
      query: listQuery,
      success: { status: 200, schema: replayMessagePageSchema },
      handle: call => answerFromEventStore(() => listRecordings(deps, call)),
    }),
    ...projectRoutes(deps, {
      route: 'GET /replay_messages/:uuid',
      id: 'replay_messages_retrieve',
      tag,
      summary: `Get one request with its snapshots, which are kept for ${recordingRetentionDays.items} days.`,
      scope,
      success: { status: 200, schema: replayMessageWithItemsSchema },
      handle: ({ project, params, signal }) =>
        answerFromEventStore(async () => {
          const uuid = params.uuid!
          const found = isUuid(uuid) ? await deps.events.findRecording(project.id, uuid.toLowerCase(), signal) : null
          if (found === null) return refusal(notFoundHere)
          const { recording, items } = found
          const json = items === null ? null : await unpackItems(items, recording.itemsBytes)
          return { status: 200, json: encodeReplayMessageWithItems(recording, json) }
        }),
    }),
  ]
}

async function listRecordings(deps: ManagementDeps, call: ProjectCall<typeof listQuery, unknown>): Promise<Answer> {
  const { project, query, signal } = call
  const zone = { timezone: project.timezone, nowMs: deps.clock.nowMs() }
  const bounds = readBounds(query, zone)
  if (!bounds.ok) return refusal(bounds.error)
  const filters = omitUndefined({ sessionId: query.session_id, distinctId: query.distinct_id })
  return answerCursorList<RecordingView, RecordingCursor>(
    call,
    { cursor: query.cursor, limit: query.limit, pinned: encodeBoundParams(bounds.value) },
    async (after, limit) => {
      const asked = { projectId: project.id, ...filters, ...bounds.value, limit, ...omitUndefined({ after }) }
      const { recordings, next } = await deps.events.listRecordings(asked, signal)
      return ok({ rows: recordings, next })
    },
    { rows: encodeObjects(encodeReplayMessage), cursor: ({ timestampMs, uuid }) => `${timestampMs}_${uuid}` },
  )
}

function cursorParam(): QueryParam<RecordingCursor | undefined> {
  return optionalParam(
    Type.String({ description: 'Position after the previous page; part of `next`.' }),
    (text, name) => {
      const match = /^(-?\d{1,13})_([0-9a-f-]{36})$/.exec(text)
      if (match === null || !isUuid(match[2]!))
        return err(invalid(name, 'Not a cursor: use the URL in `next` unchanged.'))
      return ok({ timestampMs: Number(match[1]), uuid: match[2]! })
    },
  )
}
