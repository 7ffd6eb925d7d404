// A project's usage per UTC day.

import { ok } from '#core/result.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import { usageSchema } from '#wire/management/status.ts'
import { answer, invalidInput, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { readInstant } from '../kit/instants.ts'
import { textParam } from '../kit/query-params.ts'

const daysMax = 3_660

export function usageRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /usage',
    id: 'usage',
    summary: 'Get usage against each quota, and imported events, per UTC day. Days without usage may be omitted.',
    scope: 'project:read',
    query: {
      date_from: textParam('First day: 2026-01-31, or a span such as -30d. Default: -30d.'),
      date_to: textParam('Last day. Default: today.'),
    },
    success: { status: 200, schema: usageSchema },
    handle: async ({ project, query }) => {
      const zone = { timezone: 'UTC', nowMs: deps.clock.nowMs() }
      const from = readInstant(query.date_from ?? '-30d', 'date_from', zone)
      if (!from.ok) return refusal(from.error)
      const to = query.date_to === undefined ? ok(zone.nowMs) : readInstant(query.date_to, 'date_to', zone)
      if (!to.ok) return refusal(to.error)
      if (to.value - from.value > daysMax * dayMs) return refusal(invalidInput('date_from', `At most ${daysMax} days.`))
      const rows = await deps.management.listUsage(project.id, utcDay(from.value), utcDay(to.value))
      // The worker also counts days before the project was made, for late events; those days are hidden unless they
      // have events.
      const firstDay = utcDay(project.createdAtMs)
      const shown = rows.filter(
        row => row.day >= firstDay || row.eventsCharged + row.eventsImported + row.flagRequests + row.recordings > 0,
      )
      const results = shown.map(row => ({
        date: row.day,
        events_charged: row.eventsCharged,
        events_imported: row.eventsImported,
        flag_requests: row.flagRequests,
        exceptions: row.exceptions,
        llm_events: row.llmEvents,
        survey_responses: row.surveyResponses,
        recordings: row.recordings,
      }))
      return answer(200, { results })
    },
  })
}
