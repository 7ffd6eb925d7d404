// Accepts events: finds the project, has the events normalised and encoded, appends them to the log and answers only
// when the log has them. Keeps what it refuses where the project finds it. Knows nothing of HTTP; `http/handlers/capture.ts`
// turns outcomes into answers.

import type { HotKeys } from '#core/capture/hot-keys.ts'
import type { IncomingRequest } from '#core/capture/incoming-event.ts'
import { type ItemVerdicts, itemVerdictCountMax } from '#core/capture/item-verdicts.ts'
import {
  type PreparedEvents,
  prepareEvents,
  type ReceivedRequest,
  type RefusedRequest,
} from '#core/capture/prepare-events.ts'
import type { QuotaResource } from '#core/capture/quota-resource.ts'
import type { RejectedBody } from '#core/events/captured-event.ts'
import { assignProject } from '#core/log/record-codec.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { inSlices } from '../shared/in-slices.ts'
import { createEventAppender, performanceReason } from './append-events.ts'
import { type CaptureOutcome, nothingStored } from './capture-outcome.ts'
import { coolHotKeys } from './cool-hot-keys.ts'
import { createRejectKeeper, type RefusedInput } from './keep-rejects.ts'
import { type LeftOut, QuotaGate, usedUpQuotas } from './leave-out-over-quota.ts'
import type { ProjectBacklog } from './project-backlog.ts'
import type { RefusedCounter } from './refused-counter.ts'
import { createUnavailable } from './unavailable.ts'

export interface CaptureDependencies {
  /** By project API key; null when no project has it. May answer at once. */
  readonly findProject: (token: string) => MaybePromise<Project | null>
  /** `accept`: PostHog's behaviour, events of unknown keys are answered like others and dropped. */
  readonly unknownKeys: 'reject' | 'accept'
  /** Only historical migrations are taken; everything else is answered and left. */
  readonly importOnly: boolean
  /** Cheap; asked of projects that have a quota at all. */
  readonly isOverQuota: (project: Project, resource: QuotaResource) => boolean
  /** Without it no distinct id is ever hot. */
  readonly hotKeys?: HotKeys
  /** Gets what arrives under a known key and leaves no record in the log. */
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogWriter
  /** Without it a project may have any number of events waiting. */
  readonly backlog?: ProjectBacklog
  readonly importBacklog?: ProjectBacklog
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
}

/** A request whose events were prepared elsewhere, for no project yet. */
export interface PreparedRequest {
  readonly token: string
  /** `v0` unless given. Quotas differ in what they leave of a batch, and in the answer. */
  readonly protocol?: 'v0' | 'v1'
  readonly historicalMigration: boolean
  readonly eventCount: number
  /** `$performance_event`s beside them, which are not kept; absent when there are none. */
  readonly performanceEventCount?: number
  readonly outcome: PreparedEvents | RefusedRequest
  /** Present for a v0 request whose client asked to be answered event by event, as every v1 request is. */
  readonly verdicts?: ItemVerdicts
}

export interface CaptureService {
  /** @param body what was sent, for the reject store; asked for only when the request is refused. */
  capture(request: IncomingRequest, received: ReceivedRequest, body: () => RejectedBody): Promise<CaptureOutcome>
  capturePrepared(request: PreparedRequest, receivedAtMs: number, body: RejectedBody): Promise<CaptureOutcome>
  /** Counts a refused request, and keeps it when its key belongs to a project. Never throws, and is not waited for. */
  keepRefused(input: RefusedInput, receivedAtMs: number): void
  /** Counts a request that held nothing else. Never throws, and is not waited for. */
  countPerformanceEvents(token: string | null, count: number): void
}

export function createCaptureService(dependencies: CaptureDependencies): CaptureService {
  const { clock, metrics, logger, refused } = dependencies
  const keeper = createRejectKeeper(dependencies)
  const unavailable = createUnavailable({ what: 'events', nowMs: clock.nowMs, metrics, logger })
  const { append, countNothingStored } = createEventAppender({ ...dependencies, keeper, unavailable })

  return {
    capture(request, received, body) {
      const { token, historicalMigration, events, performanceEventCount = 0 } = request
      const arrived: Arrived = {
        token,
        historicalMigration,
        eventCount: request.itemised?.verdicts.itemCount ?? events.length + performanceEventCount,
        protocol: 'v0',
        hotListedMax: hotListedMaxOf('v0', request.itemised !== undefined),
        performanceEventCount,
      }
      return withProject(token, events.length, project => {
        if (isDiscarded(arrived)) return discard(project, arrived)
        const gate = quotaGate(project, arrived)
        const prepared = prepareWithinQuota(request, project, received, gate)
        return refuseOrStore(project, arrived, prepared, gate, received.receivedAtMs, body)
      })
    },

    capturePrepared(request, receivedAtMs, body) {
      return withProject(request.token, request.eventCount, async project => {
        const { outcome } = request
        const { token, historicalMigration, protocol = 'v0', performanceEventCount = 0 } = request
        const eventCount = request.verdicts?.itemCount ?? request.eventCount + performanceEventCount
        const hotListedMax = hotListedMaxOf(protocol, request.verdicts !== undefined)
        const arrived = { token, historicalMigration, eventCount, protocol, hotListedMax, performanceEventCount }
        if (isDiscarded(arrived)) return discard(project, arrived)
        if (!('refusal' in outcome)) {
          if (outcome.main !== null) await inSlices(assignProject(outcome.main.bytes, project.id))
          if (outcome.historical !== null) await inSlices(assignProject(outcome.historical.bytes, project.id))
        }
        return refuseOrStore(project, arrived, outcome, quotaGate(project, arrived), receivedAtMs, () => body)
      })
    },

    keepRefused(input, receivedAtMs) {
      metrics.eventsRefused.inc({ reason: input.reason })
      if (input.token !== null) void keeper.keepForKey(input.token, input, receivedAtMs)
    },

    countPerformanceEvents(token, count) {
      metrics.eventsRefused.inc({ reason: performanceReason }, count)
      if (token !== null) void keeper.countForKey(token, performanceReason, count)
    },
  }

  /** Calls back with the project of a key: at once, where it is at hand. */
  async function withProject(
    token: string,
    eventCount: number,
    use: (project: Project) => Promise<CaptureOutcome>,
  ): Promise<CaptureOutcome> {
    let project: Project | null
    try {
      const found = dependencies.findProject(token)
      project = found instanceof Promise ? await found : found
    } catch (error) {
      return { ...unavailable(error), isProjectUnknown: true }
    }
    if (project !== null) return use(project)
    metrics.eventsRefused.inc({ reason: 'unknown_api_key' }, eventCount)
    return dependencies.unknownKeys === 'reject' ? { kind: 'unknown_project' } : nothingStored
  }

  /** Source: docs/wire/ingestion.md 5. */
  function isDiscarded(arrived: Arrived): boolean {
    return dependencies.importOnly && !arrived.historicalMigration
  }

  function discard(project: Project, { eventCount }: Arrived): Promise<CaptureOutcome> {
    metrics.eventsRefused.inc({ reason: importOnlyReason }, eventCount)
    refused.count(project.id, importOnlyReason, eventCount, () => ({ setting: 'PENNON_IMPORT_ONLY' }))
    return Promise.resolve({ kind: 'discarded' })
  }

  /** Null when all events may pass. */
  function quotaGate(project: Project, { historicalMigration, protocol }: Arrived): QuotaGate | null {
    const usedUp = historicalMigration ? null : usedUpQuotas(project, dependencies.isOverQuota)
    return usedUp === null ? null : new QuotaGate(usedUp, protocol)
  }

  /**
   * Quotas come before a look at single events. Source: docs/wire/ingestion.md 1.7. In a thread, which knows none, and where
   * events may turn out to be imports, a bad event refuses its request all the same.
   */
  function prepareWithinQuota(
    request: IncomingRequest,
    project: Project,
    received: ReceivedRequest,
    gate: QuotaGate | null,
  ): PreparedEvents | RefusedRequest {
    const prepared = prepareEvents(request, project.id, received)
    if (gate === null || !('refusal' in prepared) || received.rerouteOlderThanMs) return prepared
    const { events } = request
    const passed = gate.pass(events)
    const placeOf = (index: number) => request.placeOf(events.indexOf(passed[index]!))
    const again = prepareEvents({ ...request, events: passed, placeOf }, project.id, received)
    return 'refusal' in again ? { ...again, index: events.indexOf(passed[again.index]!) } : again
  }

  function refuseOrStore(
    project: Project,
    arrived: Arrived,
    prepared: PreparedEvents | RefusedRequest,
    gate: QuotaGate | null,
    receivedAtMs: number,
    body: () => RejectedBody,
  ): Promise<CaptureOutcome> {
    if ('refusal' in prepared) {
      const { refusal, index, field, item } = prepared
      const { token, historicalMigration, eventCount } = arrived
      const input = { token, reason: refusal, field, body: '', eventCount, ...(eventCount === 1 && { item }) }
      metrics.eventsRefused.inc({ reason: refusal })
      keeper.keep(project, input, { body, historicalMigration, receivedAtMs })
      return Promise.resolve({ kind: 'refused', refusal, index, field })
    }
    return gate === null ? store(project, arrived, prepared, null) : storeWithinQuota(project, arrived, prepared, gate)
  }

  async function storeWithinQuota(
    project: Project,
    arrived: Arrived,
    prepared: PreparedEvents,
    gate: QuotaGate,
  ): Promise<CaptureOutcome> {
    const { kept, leftOut } = await gate.filter(prepared)
    if (leftOut.count === 0 || arrived.protocol === 'v0' || kept.main !== null || kept.historical !== null)
      return store(project, arrived, kept, leftOut)
    countNothingStored(project, prepared, leftOut)
    return { kind: 'over_quota', resource: leftOut.events[0]!.resource }
  }

  function store(
    project: Project,
    arrived: Arrived,
    prepared: PreparedEvents,
    leftOut: LeftOut | null,
  ): Promise<CaptureOutcome> {
    const { hotKeys } = dependencies
    if (hotKeys === undefined || arrived.historicalMigration) return append(project, arrived, prepared, leftOut)
    return storeCooled(hotKeys, project, arrived, prepared, leftOut)
  }

  async function storeCooled(
    hotKeys: HotKeys,
    project: Project,
    arrived: Arrived,
    prepared: PreparedEvents,
    leftOut: LeftOut | null,
  ): Promise<CaptureOutcome> {
    const options = { nowMs: clock.nowMs(), listedMax: arrived.hotListedMax }
    const { cooled, hot } = await coolHotKeys(hotKeys, project.id, prepared, options)
    const outcome = await append(project, arrived, cooled, leftOut)
    if (hot.count === 0 || outcome.kind !== 'accepted') return outcome
    metrics.hotKeyEvents.inc(hot.count)
    return hot.events.length === 0 ? outcome : { ...outcome, hot }
  }
}

/** What arrived, however it was decoded. */
interface Arrived {
  readonly token: string
  readonly historicalMigration: boolean
  readonly eventCount: number
  readonly protocol: 'v0' | 'v1'
  /** How many events with a hot distinct id the answer lists at most. */
  readonly hotListedMax: number
  /** The part of `eventCount` that is not kept and has no record. */
  readonly performanceEventCount: number
}

/** v1 lists every event; v0 lists them where it is asked to, and only up to the bound. */
function hotListedMaxOf(protocol: 'v0' | 'v1', asksForVerdicts: boolean): number {
  if (protocol === 'v1') return Number.POSITIVE_INFINITY
  return asksForVerdicts ? itemVerdictCountMax : 0
}

export const importOnlyReason = 'non_historical_import_drop'
