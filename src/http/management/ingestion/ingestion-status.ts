// How far the worker has processed the log, so that scripts and tests can wait for their events; and the outcomes of a
// project's events: by the worker for their records, and by fronts for events without a record.

import type { LogStream } from '#core/events/log-stream.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import { findProgress } from '#services/progress/find-progress.ts'
import { instant } from '#wire/management/shapes.ts'
import {
  ingestionStatusSchema,
  type OutcomeJson,
  type RefusedJson,
  type StreamStatusJson,
} from '#wire/management/status.ts'
import { answer } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'

/** How long the counts are stored. */
const lookBackMs = 30 * dayMs

export function ingestionStatusRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /ingestion_status',
    id: 'ingestion_status',
    tag: 'ingestion',
    summary:
      "Get appended and processed records per log stream, for the whole instance, and the outcomes of the project's events.",
    scope: 'project:read',
    success: { status: 200, schema: ingestionStatusSchema },
    handle: async ({ project }) => {
      const streams = await deps.log.streams()
      const statuses = await Promise.all(
        streams.map(async ({ stream }) => [stream, await readStreamStatus(deps, stream)]),
      )
      const outcomes: OutcomeJson[] = (await deps.management.listOutcomes(project.id)).map(
        ({ lane, outcome, reason, count }) => ({ lane, outcome, reason, count }),
      )
      const fromDay = utcDay(deps.clock.nowMs() - lookBackMs)
      const refused: RefusedJson[] = (await deps.management.listRefused(project.id, fromDay)).map(
        ({ reason, count, lastSeenMs }) => ({ reason, count, last_seen: instant(lastSeenMs) }),
      )
      return answer(200, { lanes: Object.fromEntries(statuses), outcomes, refused })
    },
  })
}

async function readStreamStatus(deps: ManagementDeps, stream: LogStream): Promise<StreamStatusJson> {
  // Read the position first: records appended in between make the lag larger, never negative.
  const { doneOffset: offset } = await findProgress(deps.management, stream)
  const { endOffset, appendedAtMs } = await deps.log.status(stream, offset)
  const lagMs = offset < endOffset && appendedAtMs !== null ? deps.clock.nowMs() - appendedAtMs : 0
  return { appended: endOffset, processed: offset, lag_seconds: Math.max(0, lagMs) / 1000 }
}
