// Accepts capture requests: finds the project, lets several passes change outcomes in the request's table, appends the
// remaining records, and answers only when the log has them. Keeps refused events where the project finds them. Knows
// nothing of HTTP; `http/handlers/capture.ts` and `capture-v1.ts` choose and send the answer.

import type { HotKeys } from '#core/capture/hot-keys.ts'
import {
  findLeftOutReason,
  freeOutcomeTable,
  type OutcomeTable,
  type RequestRefusal,
  readRequestRefusal,
  removeUnstoredRecords,
  rowCountOf,
  setEveryOutcomeCode,
} from '#core/capture/outcome-table.ts'
import { importOnlyCode, outcomes, performanceCode, unknownKeyCode } from '#core/capture/outcomes.ts'
import type { PreparedRequest } from '#core/capture/prepare-events.ts'
import type { QuotaResource } from '#core/capture/quota-resource.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import { createMetrics, type Metrics } from '#telemetry/metrics.ts'
import { runInSlices } from '../shared/run-in-slices.ts'
import type { VisitorAnonymizer } from './anonymize-visitors.ts'
import { createEventAppender, tallyItems } from './append-events.ts'
import type { AnswerCompletion, AnswerReading, CaptureOutcome } from './capture-outcome.ts'
import { excludeEventsOverQuota, findUsedUpQuotas } from './exclude-over-quota.ts'
import { createOutageHandler, type Unavailable } from './outage-handler.ts'
import type { ProjectBacklog } from './project-backlog.ts'
import { createRejectRecorder, type RefusedInput } from './record-rejects.ts'
import type { RefusedCounter } from './refused-counter.ts'
import { throttleHotKeys } from './throttle-hot-keys.ts'

export interface CaptureOptions {
  /** Finds a project by its API key; null when no project has that key. */
  readonly findProject: (token: string) => Project | null
  /** `accept` is PostHog's behaviour: events of unknown keys are answered like others and dropped. */
  readonly unknownKeys: 'reject' | 'accept'
  /** Stores historical migrations only; all other events are answered as usual and dropped. */
  readonly importOnly: boolean
  /** Must be cheap. Called only for projects that have a quota. */
  readonly isOverQuota: (project: Project, resource: QuotaResource) => boolean
  /** When absent, no distinct id is hot. */
  readonly hotKeys?: HotKeys
  readonly visitors: VisitorAnonymizer
  /** Counts what arrives under a known key and leaves no record in the log. */
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogAppender
  /** Limits how many live records a project may have waiting; no limit when absent. */
  readonly backlog?: ProjectBacklog
  readonly importBacklog?: ProjectBacklog
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
}

export type CaptureService = ReturnType<typeof createCaptureService>

export interface CaptureRequest extends PreparedRequest {
  /** Set for a replayed reject: its bad items are already counted and kept. */
  readonly isReplay?: true
}

export function createCaptureService(options: CaptureOptions) {
  const { clock, metrics, logger, hotKeys } = options
  const keeper = createRejectRecorder(options)
  const unavailable = createOutageHandler({ what: 'events', nowMs: clock.nowMs, metrics, logger })
  const { append, refuseRequest: notTaken } = createEventAppender({ ...options, keeper, unavailable })

  return {
    /**
     * Takes a request through the passes, in order, and stores the remaining items.
     * @param read makes the answer from the final table. Not called when the request is refused as a whole.
     */
    async capture<Answer>(
      request: CaptureRequest,
      receivedAtMs: number,
      read: AnswerReading<Answer>,
      complete?: AnswerCompletion<Answer>,
    ): Promise<CaptureOutcome<Answer>> {
      const project = options.findProject(request.token)
      if (project === null) return answerUnknownKey(request, read)

      const { protocol, historicalMigration, table, isReplay = false } = request
      if (!historicalMigration) applyModeAndQuotas(project, request)
      const refusal = readRequestRefusal(table)
      if (refusal !== null) return rejectRequest(project, request, receivedAtMs, refusal)
      const hidden = table.visitors.length > 0 ? hideVisitors(project, table) : null
      const failure = hidden instanceof Promise ? await hidden : hidden
      const areHotKeysCounted = hotKeys !== undefined && !historicalMigration && failure === null
      const hotCount = areHotKeysCounted
        ? await runInSlices(throttleHotKeys(table, hotKeys, project.id, clock.nowMs()))
        : 0

      // No outcome changes from here on, and the table still has all records.
      const tally = tallyItems(table, !isReplay)
      const reading = read(table)
      const answer = reading instanceof Promise ? await reading : reading
      // If quotas leave no event of a v1 request, it is refused as a whole, so its rejects are not kept. Source:
      // docs/wire/ingestion.md 4.2.
      const keepsRejects = !isReplay && (protocol === 'v0' || findLeftOutReason(table) === null)
      if (tally.others.size > 0) await runInSlices(removeUnstoredRecords(table))
      const areDropsFinal = protocol === 'v1'
      const judged = { historicalMigration, table, tally, areDropsFinal, keepsRejects, hotCount, answer }
      return failure === null ? await append(project, judged, complete) : await notTaken(project, judged, failure)
    },

    /** Gives cookieless events their hash early, if a request is prepared on the event loop. */
    visitorsOf(token: string) {
      const project = options.findProject(token)
      return project === null ? null : options.visitors.settlerOf(project)
    },

    /** Counts a refused request, and keeps it in the background when its key belongs to a project. */
    keepRefused(input: RefusedInput, receivedAtMs: number): void {
      metrics.eventsRefused.inc({ reason: input.reason })
      if (input.token !== null) keeper.keepForKey(input.token, input, receivedAtMs)
    },

    /** Counts a request that has only performance events. */
    countPerformanceEvents(token: string | null, count: number): void {
      const reason = outcomes[performanceCode]!.reason!
      metrics.eventsRefused.inc({ reason }, count)
      if (token !== null) keeper.countForKey(token, reason, count)
    },
  }

  /** Import-only mode and quotas apply to live events alone. Source: docs/wire/ingestion.md 5, 9. */
  function applyModeAndQuotas(project: Project, { table, protocol }: CaptureRequest): void {
    const usedUp = options.importOnly ? null : findUsedUpQuotas(project, options.isOverQuota)
    if (options.importOnly) setEveryOutcomeCode(table, importOnlyCode)
    else if (usedUp !== null) excludeEventsOverQuota(table, usedUp, protocol)
  }

  /** @returns why nothing of the request may be stored; null when all visitors are hidden. */
  function hideVisitors(project: Project, table: OutcomeTable): MaybePromise<Unavailable | null> {
    try {
      const hiding = options.visitors.hide(table, project)
      return hiding instanceof Promise ? hiding.then(() => null, unavailable) : null
    } catch (error) {
      return unavailable(error)
    }
  }

  function rejectRequest(
    project: Project,
    { token, historicalMigration, table, body }: CaptureRequest,
    receivedAtMs: number,
    { row, reason, field, ...item }: RequestRefusal,
  ): CaptureOutcome<never> {
    const eventCount = rowCountOf(table)
    const input = { token, reason, field, body, eventCount, historicalMigration, ...(eventCount === 1 && { item }) }
    metrics.eventsRefused.inc({ reason })
    keeper.keep(project, input, receivedAtMs)
    freeOutcomeTable(table)
    return { kind: 'refused', refusal: reason, index: row, field }
  }

  async function answerUnknownKey<Answer>(
    { table, protocol }: CaptureRequest,
    read: AnswerReading<Answer>,
  ): Promise<CaptureOutcome<Answer>> {
    metrics.eventsRefused.inc({ reason: 'unknown_api_key' }, rowCountOf(table))
    if (options.unknownKeys === 'reject') {
      freeOutcomeTable(table)
      return { kind: 'unknown_project' }
    }
    // On v0 a verbose answer shows that the key is unknown; v1 answers as if the key were known.
    if (protocol === 'v0') setEveryOutcomeCode(table, unknownKeyCode)
    const answer = await read(table)
    freeOutcomeTable(table)
    return { kind: 'stored', answer }
  }
}

/**
 * A dry run of capture: reports the outcome of a request without appending or counting anything. Ignores hot distinct ids:
 * they do not decide whether events are stored, and checking an id would count an event.
 */
export function createDryRunCaptureService(
  options: Omit<CaptureOptions, 'hotKeys' | 'refused' | 'eventLog' | 'metrics'>,
): Pick<CaptureService, 'capture'> {
  const { findProject, unknownKeys, importOnly, isOverQuota, visitors, clock, logger } = options
  return createCaptureService({
    ...{ findProject, unknownKeys, importOnly, isOverQuota, visitors, clock, logger },
    refused: { count: () => undefined },
    eventLog: { append: () => Promise.resolve() },
    metrics: createMetrics(),
  })
}
