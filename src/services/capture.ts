// Accepts events: finds the project, has the events normalised and encoded, appends them to the log and answers only
// when the log has them. Keeps what it refuses where the project finds it. Knows nothing of HTTP; `http/handlers/capture.ts`
// turns outcomes into answers.

import { type CapturedReject, type Lane, lanes, type RejectedBody } from '#core/events/captured-event.ts'
import type { HotKeys } from '#core/events/hot-keys.ts'
import type { IncomingRequest } from '#core/events/incoming-event.ts'
import { type ItemVerdicts, itemVerdictCountMax } from '#core/events/item-verdicts.ts'
import type { EventRefusal } from '#core/events/normalize-event.ts'
import {
  type PreparedEvents,
  prepareEvents,
  type ReceivedRequest,
  type RefusedRequest,
} from '#core/events/prepare-events.ts'
import { type EventResource, type QuotaResource, quotaOf } from '#core/events/quota-resource.ts'
import { assignProject, type EncodedRecords } from '#core/log/record-codec.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { coolHotKeys, type HotEvents } from './cool-hot-keys.ts'
import { inSlices } from './in-slices.ts'
import { createRejectKeeper, type RefusedInput } from './keep-rejects.ts'
import { type LeftOut, QuotaGate, usedUpQuotas } from './leave-out-over-quota.ts'
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
  /** Absent: none is looked for. */
  readonly hotKeys?: HotKeys
  /** Gets what arrives under a known key and leaves no record in the log. */
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogWriter
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
}

export type CaptureOutcome =
  /**
   * Durable. `rejects` are events of an import that were left out; `rejectedCount` counts all of them. `overQuota` are
   * events that a quota left out, in their order: all of them on v1, at most 20,000 on v0, where
   * `quotaLeftNothing` may be true.
   */
  | {
      readonly kind: 'accepted'
      readonly rejects: readonly CapturedReject[]
      readonly rejectedCount: number
      readonly overQuota: OverQuota
      readonly quotaLeftNothing: boolean
      /**
       * Of requests that are answered event by event: those that are stored without a person, since their distinct id sends
       * too many. Absent: none.
       */
      readonly hot?: HotEvents
      /** Nothing is stored: the key belongs to no project, and such are accepted. */
      readonly isKeyUnknown?: true
    }
  /** v1 alone. Nothing is stored: the quota of events is used up, or others left nothing of the batch. `resource`: the first's. */
  | { readonly kind: 'over_quota'; readonly resource: EventResource }
  /** Nothing is stored: the instance takes historical migrations only. Clients are told that all is well. */
  | { readonly kind: 'discarded' }
  | { readonly kind: 'unknown_project' }
  /** Nothing is stored: one event is bad. */
  | { readonly kind: 'refused'; readonly refusal: EventRefusal; readonly index: number; readonly field: string }
  /**
   * Nothing, or after a timeout perhaps all, is stored; the same request may be sent again. `isProjectUnknown`: whose key it
   * has could not be found out, so nothing is counted.
   */
  | { readonly kind: 'unavailable'; readonly isProjectUnknown?: true }

export type OverQuota = Pick<LeftOut, 'count' | 'events' | 'marks'>

/** A request whose events were prepared elsewhere, for no project yet. */
export interface PreparedRequest {
  readonly token: string
  /** `v0` unless given. Quotas differ in what they leave of a batch, and in the answer. */
  readonly protocol?: 'v0' | 'v1'
  readonly historicalMigration: boolean
  readonly eventCount: number
  /** `$performance_event`s beside them, which nobody keeps. Absent: none. */
  readonly performanceEventCount?: number
  readonly outcome: PreparedEvents | RefusedRequest
  /** Of a v0 request whose client asked for them: it is answered event by event, as all of v1. */
  readonly verdicts?: ItemVerdicts
}

export interface CaptureService {
  /** @param body what was sent, for the reject store; asked for only when the request is refused. */
  capture(request: IncomingRequest, received: ReceivedRequest, body: () => RejectedBody): Promise<CaptureOutcome>
  capturePrepared(request: PreparedRequest, receivedAtMs: number, body: RejectedBody): Promise<CaptureOutcome>
  /** Counts a refused request, and keeps it when its key belongs to a project. Never throws; nobody waits for it. */
  keepRefused(input: RefusedInput, receivedAtMs: number): void
  /** Counts a request that held nothing else. Never throws; nobody waits for it. */
  countPerformanceEvents(token: string | null, count: number): void
}

const performanceReason = 'dropped_performance_event'

export function createCaptureService(dependencies: CaptureDependencies): CaptureService {
  const { eventLog, clock, metrics, logger, refused } = dependencies
  const keeper = createRejectKeeper(dependencies)
  const unavailable = createUnavailable({ what: 'events', nowMs: clock.nowMs, metrics, logger })
  // Labels are resolved once: looking them up costs more than counting.
  const acceptedCounters = new Map(lanes.map(lane => [lane, metrics.eventsAccepted.labels({ lane })]))

  return {
    capture(request, received, body) {
      const { token, historicalMigration, events, performanceEventCount = 0 } = request
      const arrived: Arrived = {
        token,
        historicalMigration,
        eventCount: events.length + performanceEventCount,
        protocol: 'v0',
        hotListedMax: request.itemised === undefined ? 0 : itemVerdictCountMax,
        performanceEventCount,
      }
      return withProject(token, events.length, project => {
        if (isDiscarded(arrived)) return discard(project, arrived)
        const gate = quotaGate(project, arrived)
        let prepared = prepareEvents(request, project.id, received)
        // Quotas come before a look at single events. Source: docs/wire/ingestion.md 1.7. In a thread, which knows none, and
        // where events may turn out to be imports, a bad event refuses its request all the same.
        if (gate !== null && 'refusal' in prepared && !received.rerouteOlderThanMs) {
          const passed = gate.pass(events)
          const placeOf = (index: number) => request.placeOf(events.indexOf(passed[index]!))
          prepared = prepareEvents({ ...request, events: passed, placeOf }, project.id, received)
          if ('refusal' in prepared) prepared = { ...prepared, index: events.indexOf(passed[prepared.index]!) }
        }
        return settle(project, arrived, prepared, gate, received.receivedAtMs, body)
      })
    },

    capturePrepared(request, receivedAtMs, body) {
      return withProject(request.token, request.eventCount, async project => {
        const { outcome } = request
        const { token, historicalMigration, protocol = 'v0', performanceEventCount = 0 } = request
        const eventCount = request.eventCount + performanceEventCount
        const v0ListedMax = request.verdicts === undefined ? 0 : itemVerdictCountMax
        const hotListedMax = protocol === 'v1' ? Number.POSITIVE_INFINITY : v0ListedMax
        const arrived = { token, historicalMigration, eventCount, protocol, hotListedMax, performanceEventCount }
        if (isDiscarded(arrived)) return discard(project, arrived)
        if (!('refusal' in outcome)) {
          if (outcome.main !== null) await inSlices(assignProject(outcome.main.bytes, project.id))
          if (outcome.historical !== null) await inSlices(assignProject(outcome.historical.bytes, project.id))
        }
        return settle(project, arrived, outcome, quotaGate(project, arrived), receivedAtMs, () => body)
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

  function settle(
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
    countLeftOut(project, leftOut)
    countRejected(project.id, prepared, 0)
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

  function append(
    project: Project,
    { protocol, performanceEventCount }: Arrived,
    prepared: PreparedEvents,
    leftOut: LeftOut | null,
  ): Promise<CaptureOutcome> {
    const { main, historical, rejects } = prepared
    const granted = rejects.length === 0 ? 0 : keeper.grant(project.id, rejects.length)
    const appended = {
      events: main !== null && historical === null ? eventLog.append('main', main) : appendBoth(main, historical),
      rejects: granted === 0 ? null : keeper.append(project, rejects.slice(0, granted)),
    }
    return whenAppended(project, appended, {
      prepared,
      granted,
      leftOut,
      areDropsFinal: protocol === 'v1',
      performanceEventCount,
    })
  }

  /** Apart from what came before, so that a parsed request is not kept in memory while its events wait for the disk. */
  async function whenAppended(
    project: Project,
    appended: { readonly events: Promise<void>; readonly rejects: Promise<void> | null },
    { prepared, granted, leftOut, areDropsFinal, performanceEventCount }: Appended,
  ): Promise<CaptureOutcome> {
    const { acceptedByLane, rejects, rejectedCount } = prepared
    const quotaLeftNothing = leftOut !== null && leftOut.count > 0 && isEmpty(prepared)
    try {
      await (appended.rejects === null ? appended.events : Promise.all([appended.events, appended.rejects]))
    } catch (error) {
      const outcome = unavailable(error)
      if (areDropsFinal && rejectedCount > 0) {
        const areKept = await appended.rejects?.then(yes, no)
        countRejected(project.id, prepared, areKept === true ? granted : 0)
      }
      return outcome
    }
    if (performanceEventCount > 0) {
      metrics.eventsRefused.inc({ reason: performanceReason }, performanceEventCount)
      refused.count(project.id, performanceReason, performanceEventCount)
    }
    for (const lane in acceptedByLane) acceptedCounters.get(lane as Lane)!.inc(acceptedByLane[lane as Lane]!)
    if (leftOut !== null) countLeftOut(project, leftOut)
    if (rejectedCount > 0) countRejected(project.id, prepared, granted)
    if (rejectedCount === 0 && leftOut === null) return nothingRejected
    return { kind: 'accepted', rejects, rejectedCount, overQuota: leftOut ?? noneOverQuota, quotaLeftNothing }
  }

  function countLeftOut(project: Project, { countOf, events }: LeftOut): void {
    for (const [resource, count] of countOf) {
      const reason = `${resource}_over_quota`
      metrics.eventsRefused.inc({ reason }, count)
      refused.count(project.id, reason, count, () => {
        const eventUuid = events.find(event => event.resource === resource)?.uuid ?? ''
        return { quota: quotaOf(project.quotas, resource), ...(eventUuid !== '' && { eventUuid }) }
      })
    }
  }

  /** @param granted how many of `rejects` the log has a record of. */
  function countRejected(projectId: number, prepared: PreparedEvents, granted: number): void {
    const { rejects, rejectedCount, rejectedByReason = { timestamp_invalid: rejectedCount } } = prepared
    const kept = Map.groupBy(rejects.slice(0, granted), reject => reject.reason)
    for (const [reason, count] of Object.entries(rejectedByReason)) {
      metrics.eventsRefused.inc({ reason }, count)
      refused.count(projectId, reason, count - (kept.get(reason)?.length ?? 0))
    }
  }

  /** A request that spans both logs is answered by the worst of them; what is stored twice after a retry counts once. */
  async function appendBoth(main: EncodedRecords | null, historical: EncodedRecords | null): Promise<void> {
    const appends: Promise<void>[] = []
    if (main !== null) appends.push(eventLog.append('main', main))
    if (historical !== null) appends.push(eventLog.append('historical', historical))
    await Promise.all(appends)
  }
}

/** What arrived, however it was decoded. */
interface Arrived {
  readonly token: string
  readonly historicalMigration: boolean
  readonly eventCount: number
  readonly protocol: 'v0' | 'v1'
  /** Of how many events with a hot distinct id its client is told. */
  readonly hotListedMax: number
  /** Of `eventCount`: what nobody keeps, and no record tells of. */
  readonly performanceEventCount: number
}

/** What is known of a request whose records are on their way into the log. */
interface Appended {
  readonly prepared: PreparedEvents
  readonly performanceEventCount: number
  /** How many of its rejects are among them. */
  readonly granted: number
  readonly leftOut: LeftOut | null
  /** Its sender never sends again what is dropped, also when it is to send the others again. */
  readonly areDropsFinal: boolean
}

const yes = () => true
const no = () => false

const importOnlyReason = 'non_historical_import_drop'
const noneOverQuota: OverQuota = { count: 0, events: [], marks: new Uint8Array(0) }
const nothingRejected: CaptureOutcome = {
  kind: 'accepted',
  rejects: [],
  rejectedCount: 0,
  overQuota: noneOverQuota,
  quotaLeftNothing: false,
}
/** Events of an unknown key where those are accepted: answered like others, and dropped. */
const nothingStored: CaptureOutcome = { ...nothingRejected, isKeyUnknown: true }

function isEmpty({ main, historical }: PreparedEvents): boolean {
  return main === null && historical === null
}
