// Ingestion warnings: events that were stored although something about them deserves attention.

import { dayMs } from '#core/time.ts'
import { instant } from '#wire/management/shapes.ts'
import { type WarningJson, warningsSchema } from '#wire/management/status.ts'
import { answer } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'

/** How long warnings are stored. */
const lookBackMs = 30 * dayMs
const sampleCountMax = 50

export function warningsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /ingestion_warnings',
    id: 'ingestion_warnings_list',
    tag: 'ingestion',
    summary: `List ingestion warnings of the last 30 days by type, with up to ${sampleCountMax} examples each.`,
    scope: 'ingestion_warning:read',
    success: { status: 200, schema: warningsSchema },
    handle: async ({ project }) => {
      const summaries = await deps.management.listWarnings(project.id, {
        sinceMs: deps.clock.nowMs() - lookBackMs,
        sampleCountMax,
      })
      const results: WarningJson[] = summaries.map(({ type, count, lastSeenMs, warnings }) => ({
        type,
        count,
        last_seen: instant(lastSeenMs),
        warnings: warnings.map(({ timestampMs, details }) => ({ timestamp: instant(timestampMs), details })),
      }))
      return answer(200, { results })
    },
  })
}
