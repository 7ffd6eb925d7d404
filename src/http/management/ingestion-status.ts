// How far the worker is: scripts and tests wait here until what they sent is processed. And what became of a project's
// events: what the worker did with the records in the log, and what fronts answered without making one.

import { logLanes } from '#core/events/captured-event.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import {
  ingestionStatusSchema,
  type LaneStatusJson,
  type OutcomeJson,
  type RefusedJson,
} from '#wire/management/management.ts'
import { instant } from '#wire/management/shapes.ts'
import { answer } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, projectRoutes } from './kit/endpoint.ts'

/** As long as the counts are kept. */
const lookBackMs = 30 * dayMs

export function ingestionStatusRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    method: 'GET',
    path: '/ingestion_status',
    id: 'ingestion_status',
    tag: 'ingestion',
    summary: 'Appended and processed records of each lane, of the whole instance; what became of those of the project.',
    scope: 'project:read',
    success: { status: 200, schema: ingestionStatusSchema },
    handle: async ({ project }) => {
      const lanes = await Promise.all(logLanes.map(async lane => [lane, await laneStatus(deps, lane)] as const))
      const outcomes: OutcomeJson[] = (await deps.management.listOutcomes(project.id)).map(
        ({ lane, outcome, reason, count }) => ({ lane, outcome, reason, count }),
      )
      const fromDay = utcDay(deps.clock.nowMs() - lookBackMs)
      const refused: RefusedJson[] = (await deps.management.listRefused(project.id, fromDay)).map(
        ({ reason, count, lastSeenMs }) => ({ reason, count, last_seen: instant(lastSeenMs) }),
      )
      return answer(200, { lanes: Object.fromEntries(lanes), outcomes, refused })
    },
  })
}

async function laneStatus(deps: ManagementDeps, lane: (typeof logLanes)[number]): Promise<LaneStatusJson> {
  // The position first: what is appended meanwhile makes the lag larger, never negative.
  const { offset } = await deps.management.findLogPosition(lane)
  const { endOffset, appendedAtMs } = await deps.logStatus(lane, offset)
  const lagMs = offset < endOffset && appendedAtMs !== null ? deps.clock.nowMs() - appendedAtMs : 0
  return { appended: endOffset, processed: offset, lag_seconds: Math.max(0, lagMs) / 1000 }
}
