// Reports what became of events: how far the worker is, for scripts that wait for their events; the outcomes of records in
// the worker, and of events for which fronts wrote no record; lost records; usage per UTC day; and warnings about stored
// events.

import type { LogStream } from '#core/events/log-stream.ts'
import { ok } from '#core/result.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type { LogLoss } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { findStreamProgress } from '#services/progress/find-progress.ts'
import { countedPageSchema, formatInstant } from '#wire/management/shapes.ts'
import {
  ingestionStatusSchema,
  type LostRecordsJson,
  lostRecordsSchema,
  type OutcomeJson,
  type RefusedJson,
  type StreamStatusJson,
  usageSchema,
  type WarningJson,
  warningsSchema,
} from '#wire/management/status.ts'
import { wireError } from '#wire/wire-error.ts'
import { answer, createInvalidInputError, createPermissionDeniedError, refusal } from '../kit/answers.ts'
import { isLimitedToProjects } from '../kit/authenticate.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { instanceRoutes, type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { readInstant } from '../kit/instants.ts'
import { answerCountedList, encodeObjects } from '../kit/list-answers.ts'
import { pageParams, textParam } from '../kit/query-params.ts'

/** How long counts and warnings are stored. */
const lookBackMs = 30 * dayMs
const usageDaysMax = 3_660
const sampleCountMax = 50

export function ingestionReportsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /ingestion_status',
      id: 'ingestion_status',
      tag: 'ingestion',
      summary:
        "Get appended and processed records per log stream, for the whole instance, and the outcomes of the project's events.",
      scope: 'project:read',
      success: { status: 200, schema: ingestionStatusSchema },
      handle: async ({ project }) => {
        const streams = await deps.log.listStreams()
        const statuses = await Promise.all(
          streams.map(async ({ stream }) => [stream, await readStreamStatus(deps, stream)]),
        )
        const outcomes: OutcomeJson[] = (await deps.management.listOutcomes(project.id)).map(
          ({ lane, outcome, reason, count }) => ({ lane, outcome, reason, count }),
        )
        const fromDay = utcDay(deps.clock.nowMs() - lookBackMs)
        const refused: RefusedJson[] = (await deps.management.listRefused(project.id, fromDay)).map(
          ({ reason, count, lastSeenMs }) => ({ reason, count, last_seen: formatInstant(lastSeenMs) }),
        )
        return answer(200, { lanes: Object.fromEntries(statuses), outcomes, refused })
      },
    }),
    ...instanceRoutes(deps, {
      route: 'GET /api/instance/lost_records',
      id: 'lost_records_list',
      tag: 'ingestion',
      summary:
        'List accepted records of the whole instance that the log lost or found damaged, newest first. Listed until log/lost-records.jsonl is removed.',
      scope: '*',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(lostRecordsSchema) },
      handle: async call => {
        if (isLimitedToProjects(call.caller)) return refusal(limitedKey)
        try {
          const losses = (await deps.log.listLosses()).toReversed()
          return await answerCountedList(
            call,
            call.query,
            async ({ limit, offset }) => ({ count: losses.length, results: losses.slice(offset, offset + limit) }),
            encodeObjects(encodeLoss),
          )
        } catch (error) {
          if (!(error instanceof PortError)) throw error
          return refusal(logUnavailable)
        }
      },
    }),
    ...projectRoutes(deps, {
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
        if (to.value - from.value > usageDaysMax * dayMs)
          return refusal(createInvalidInputError('date_from', `At most ${usageDaysMax} days.`))
        const rows = await deps.management.listUsage(project.id, utcDay(from.value), utcDay(to.value))
        // For late events, the worker also counts days before the project was created; such days are shown only if any of
        // these counts is above 0.
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
    }),
    ...projectRoutes(deps, {
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
          last_seen: formatInstant(lastSeenMs),
          warnings: warnings.map(({ timestampMs, details }) => ({ timestamp: formatInstant(timestampMs), details })),
        }))
        return answer(200, { results })
      },
    }),
  ]
}

async function readStreamStatus(deps: ManagementDeps, stream: LogStream): Promise<StreamStatusJson> {
  // Read the position first: records appended in between make the lag larger, never negative.
  const { doneOffset: offset } = await findStreamProgress(deps.management, stream)
  const { endOffset, appendedAtMs } = await deps.log.readStreamStatus(stream, offset)
  const lagMs = offset < endOffset && appendedAtMs !== null ? deps.clock.nowMs() - appendedAtMs : 0
  return { appended: endOffset, processed: offset, lag_seconds: Math.max(0, lagMs) / 1000 }
}

function encodeLoss(loss: LogLoss): LostRecordsJson {
  return {
    lane: loss.stream,
    from_offset: loss.fromOffset,
    to_offset: loss.toOffset,
    record_count: loss.recordCount ?? loss.toOffset - loss.fromOffset,
    file: loss.file,
    noticed_at: formatInstant(loss.noticedAtMs),
    body: loss.body ?? null,
  }
}

const limitedKey = createPermissionDeniedError(
  'This key is limited to some projects; lost records concern all projects.',
)
const logUnavailable = wireError(503, 'transient_error', 'The log is temporarily unavailable: repeat the request.')
