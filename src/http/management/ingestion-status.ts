// How far the worker is: scripts and tests wait here until what they sent is processed.

import { logLanes } from '#core/events/captured-event.ts'
import { ingestionStatusSchema, type LaneStatusJson } from '#wire/management.ts'
import { answer } from './answers.ts'
import type { ManagementDeps } from './deps.ts'
import { type ManagementRoute, projectRoutes } from './endpoint.ts'

export function ingestionStatusRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    method: 'GET',
    path: '/ingestion_status',
    id: 'ingestion_status',
    tag: 'ingestion',
    summary: 'Appended and processed records of each lane, of the whole instance.',
    scope: 'project:read',
    success: { status: 200, schema: ingestionStatusSchema },
    handle: async () => {
      const lanes = await Promise.all(logLanes.map(async lane => [lane, await laneStatus(deps, lane)] as const))
      return answer(200, { lanes: Object.fromEntries(lanes) })
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
