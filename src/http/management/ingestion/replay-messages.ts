// Read-only access to recordings: messages by session, and their snapshots until they expire. There is no player.

import { decompressItems } from '#core/capture/compressed-items.ts'
import { isUuid } from '#core/events/uuid.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { ok } from '#core/result.ts'
import type { RecordingView } from '#ports/events/recording-store.ts'
import { type RecordingCursor, recordingRetentionDays } from '#ports/events/recording-store.ts'
import {
  encodeReplayMessage,
  encodeReplayMessageWithItems,
  replayMessagePageSchema,
  replayMessageWithItemsSchema,
} from '#wire/management/replay-messages.ts'
import { type Answer, answerFromEventStore, notFoundHere, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from '../kit/endpoint.ts'
import { encodeTimeBoundParams, readTimeBounds, timeBoundParams } from '../kit/instants.ts'
import { answerCursorList, encodeObjects } from '../kit/list-answers.ts'
import { cursorParam, limitParam, textParam, unsupportedOffsetParams } from '../kit/query-params.ts'

const tag = 'replay'
const scope = 'session_recording:read'

const listQuery = {
  session_id: textParam('Id of the recorded session.'),
  distinct_id: textParam('Distinct id of the recording.'),
  ...timeBoundParams('recordings'),
  limit: limitParam(),
  ...unsupportedOffsetParams(),
  cursor: cursorParam(parseCursor),
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
          const json = items === null ? null : await decompressItems(items, recording.itemsBytes)
          return { status: 200, json: encodeReplayMessageWithItems(recording, json) }
        }),
    }),
  ]
}

async function listRecordings(deps: ManagementDeps, call: ProjectCall<typeof listQuery, unknown>): Promise<Answer> {
  const { project, query, signal } = call
  const zone = { timezone: project.timezone, nowMs: deps.clock.nowMs() }
  const bounds = readTimeBounds(query, zone)
  if (!bounds.ok) return refusal(bounds.error)
  const filters = omitUndefined({ sessionId: query.session_id, distinctId: query.distinct_id })
  return answerCursorList<RecordingView, RecordingCursor>(
    call,
    { cursor: query.cursor, limit: query.limit, pinned: encodeTimeBoundParams(bounds.value) },
    async (after, limit) => {
      const asked = { projectId: project.id, ...filters, ...bounds.value, limit, ...omitUndefined({ after }) }
      const { recordings, next } = await deps.events.listRecordings(asked, signal)
      return ok({ rows: recordings, next })
    },
    { rows: encodeObjects(encodeReplayMessage), cursor: ({ timestampMs, uuid }) => `${timestampMs}_${uuid}` },
  )
}

function parseCursor(text: string): RecordingCursor | null {
  const match = /^(-?\d{1,13})_([0-9a-f-]{36})$/.exec(text)
  return match === null || !isUuid(match[2]!) ? null : { timestampMs: Number(match[1]), uuid: match[2]! }
}
