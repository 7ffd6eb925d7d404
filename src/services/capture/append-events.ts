// Appends what is to be stored of a request. Once the log has it, counts what was accepted, and what was left out on the way
// and has no record.

import type { PreparedEvents } from '#core/capture/prepare-events.ts'
import { quotaOf } from '#core/capture/quota-resource.ts'
import { type Lane, lanes } from '#core/events/captured-event.ts'
import type { EncodedRecords } from '#core/log/record-codec.ts'
import type { Project } from '#core/project.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { type CaptureOutcome, noneOverQuota, nothingRejected } from './capture-outcome.ts'
import type { RejectKeeper } from './keep-rejects.ts'
import type { LeftOut } from './leave-out-over-quota.ts'
import { backlogReason, type ProjectBacklog } from './project-backlog.ts'
import type { RefusedCounter } from './refused-counter.ts'
import type { createUnavailable } from './unavailable.ts'

export interface EventAppenderDependencies {
  readonly keeper: Pick<RejectKeeper, 'grant' | 'append'>
  readonly unavailable: ReturnType<typeof createUnavailable>
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogWriter
  /** Bounds what a project has waiting in the main lane. Without it there is no bound. */
  readonly backlog?: ProjectBacklog
  /** Does the same for the historical lane. */
  readonly importBacklog?: ProjectBacklog
  readonly metrics: Metrics
}

export interface EventAppender {
  /**
   * Resolves when the log has the events and those of the rejects that may be kept.
   * @param leftOut what a quota took out before; null when no quota was asked.
   */
  append(
    project: Project,
    request: AppendedRequest,
    prepared: PreparedEvents,
    leftOut: LeftOut | null,
  ): Promise<CaptureOutcome>
  /** Instead, where a quota left nothing to append. */
  countNothingStored(project: Project, prepared: PreparedEvents, leftOut: LeftOut): void
}

export interface AppendedRequest {
  readonly protocol: 'v0' | 'v1'
  /** `$performance_event`s in it, which are not kept. */
  readonly performanceEventCount: number
}

export const performanceReason = 'dropped_performance_event'

export function createEventAppender(dependencies: EventAppenderDependencies): EventAppender {
  const { keeper, unavailable, refused, eventLog, backlog, importBacklog, metrics } = dependencies
  // Labels are resolved once: looking them up costs more than counting.
  const acceptedCounters = new Map(lanes.map(lane => [lane, metrics.eventsAccepted.labels({ lane })]))

  return {
    append,
    countNothingStored(project, prepared, leftOut) {
      countLeftOut(project, leftOut)
      countRejected(project.id, prepared, 0)
    },
  }

  function append(
    project: Project,
    { protocol, performanceEventCount }: AppendedRequest,
    prepared: PreparedEvents,
    leftOut: LeftOut | null,
  ): Promise<CaptureOutcome> {
    const { main, historical, rejects } = prepared
    const units = unitsOf(backlog, project.id, main)
    const importUnits = units === null ? null : unitsOf(importBacklog, project.id, historical)
    if (units === null || importUnits === null) {
      if (units !== null) settle(project.id, units, 0, false)
      metrics.eventsRefused.inc({ reason: backlogReason }, (main?.recordCount ?? 0) + (historical?.recordCount ?? 0))
      if (protocol === 'v1' && prepared.rejectedCount > 0) return withoutRoom(project, prepared)
      return Promise.resolve({ kind: 'unavailable' })
    }
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
      units,
      importUnits,
    })
  }

  function settle(projectId: number, units: number, importUnits: number, isStored: boolean): void {
    if (units > 0) backlog!.settle(projectId, units, isStored)
    if (importUnits > 0) importBacklog!.settle(projectId, importUnits, isStored)
  }

  /** The project has too much waiting. What is dropped of its request is dropped for good, and does not come again. */
  async function withoutRoom(project: Project, prepared: PreparedEvents): Promise<CaptureOutcome> {
    const { rejects } = prepared
    const granted = rejects.length === 0 ? 0 : keeper.grant(project.id, rejects.length)
    const areKept = granted > 0 && (await keeper.append(project, rejects.slice(0, granted)).then(yes, no))
    countRejected(project.id, prepared, areKept ? granted : 0)
    return { kind: 'unavailable' }
  }

  /** Apart from what came before, so that a parsed request is not kept in memory while its events wait for the disk. */
  async function whenAppended(
    project: Project,
    appended: { readonly events: Promise<void>; readonly rejects: Promise<void> | null },
    { prepared, granted, leftOut, areDropsFinal, performanceEventCount, units, importUnits }: Appended,
  ): Promise<CaptureOutcome> {
    const { acceptedByLane, rejects, rejectedCount } = prepared
    const quotaLeftNothing = leftOut !== null && leftOut.count > 0 && isEmpty(prepared)
    try {
      await (appended.rejects === null ? appended.events : Promise.all([appended.events, appended.rejects]))
    } catch (error) {
      // Where both logs were asked, one of them may have stored its part.
      settle(project.id, units, importUnits, units > 0 && importUnits > 0)
      const outcome = unavailable(error)
      if (areDropsFinal && rejectedCount > 0) {
        const areKept = await appended.rejects?.then(yes, no)
        countRejected(project.id, prepared, areKept === true ? granted : 0)
      }
      return outcome
    }
    settle(project.id, units, importUnits, true)
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

/** What is known of a request whose records are on their way into the log. */
interface Appended {
  readonly prepared: PreparedEvents
  readonly performanceEventCount: number
  /** What it counts for among those of its project that wait for the worker, in the main lane. */
  readonly units: number
  /** The same in the historical lane. */
  readonly importUnits: number
  /** How many of its rejects are among them. */
  readonly granted: number
  readonly leftOut: LeftOut | null
  /** Its sender never sends again what is dropped, also when it is to send the others again. */
  readonly areDropsFinal: boolean
}

/** @returns what the records count for; null when the project has too much waiting. */
function unitsOf(backlog: ProjectBacklog | undefined, projectId: number, records: EncodedRecords | null) {
  return records === null || backlog === undefined ? 0 : backlog.take(projectId, records)
}

const yes = () => true
const no = () => false

function isEmpty({ main, historical }: PreparedEvents): boolean {
  return main === null && historical === null
}
