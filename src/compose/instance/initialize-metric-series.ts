// Starts series of `/metrics` at 0. If a counter appeared only with its first event, `rate()` would miss that event, and an
// alert would miss the first failure. Only series with labels from closed lists are started; series that depend on a
// client's version begin with their first event.

import { outcomes } from '#core/capture/outcomes.ts'
import { lanes } from '#core/events/captured-event.ts'
import { dropReasons } from '#core/events/event-drops.ts'
import { unknownReasons } from '#core/flags/evaluation/flag-outcome.ts'
import { rejectReasons } from '#core/processing/rejects/rejects.ts'
import { routeGroups } from '#http/shared/route.ts'
import { portErrorCodes } from '#ports/port-error.ts'
import type { DecideResult } from '#services/flags/decide.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { otlpSignals } from '#wire/otlp/otlp-paths.ts'
import { knownRejectReasons } from '#wire/rejects/reject-reasons.ts'

/** The statuses that alerts use; other statuses appear after their first response. */
const statuses = [200, 400, 401, 500, 503]

const flagResults = [
  'evaluated',
  'evaluated_with_errors',
  'disabled',
  'quota_limited',
  'missing_distinct_id',
  'missing_property',
  'visitor_unknown',
  'unknown_key',
  'busy',
] as const satisfies readonly (DecideResult<never>['kind'] | 'evaluated_with_errors')[]

const ports = [
  'state',
  'event-log',
  'event-store',
  'chunk-store',
  'subject-store',
  'hash-key-overrides',
  'cookieless-salts',
]
const loginDrops = ['person_missing', 'queue_full', 'queue_timeout']
const supervised = ['work', 'events', 'front', 'decode thread']

/** Call this in only one process of an instance, since `/metrics` shows the sums over all processes. */
export function initializeMetricSeries(metrics: Metrics): void {
  for (const route of routeGroups) {
    metrics.requestSeconds.labels({ route })
    for (const status of statuses) metrics.requests.labels({ route, status })
  }
  for (const result of flagResults) metrics.flagEvaluations.labels({ result })
  for (const reason of unknownReasons) metrics.flagsUnknown.inc({ reason }, 0)
  const leftOut = outcomes.flatMap(({ isStored, reason }) => (isStored || reason === null ? [] : [reason]))
  for (const reason of [...knownRejectReasons, ...leftOut, 'recordings_over_quota'])
    metrics.eventsRefused.inc({ reason }, 0)
  for (const signal of otlpSignals) metrics.otlpItems.inc({ signal }, 0)
  for (const lane of lanes) {
    metrics.eventsAccepted.inc({ lane }, 0)
    metrics.eventsProcessed.inc({ lane, outcome: 'stored', reason: '' }, 0)
    for (const reason of [...rejectReasons, 'log_record_missing'])
      metrics.eventsProcessed.inc({ lane, outcome: 'rejected', reason }, 0)
  }
  for (const reason of dropReasons) metrics.eventsProcessed.inc({ lane: 'main', outcome: 'dropped', reason }, 0)
  for (const reason of loginDrops) metrics.loginsDropped.inc({ why: reason }, 0)
  for (const port of ports) for (const code of portErrorCodes) metrics.dependencyFailures.inc({ port, code }, 0)
  for (const process of supervised) metrics.childRestarts.inc({ process }, 0)
}
