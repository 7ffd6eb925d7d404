// Appends a request's events and rejects to the log. Once the log has them, counts the accepted events, and the items
// that were left out and have no record.

import { missingProperties } from '#core/capture/cookieless-event.ts'
import type { RefusedItem } from '#core/capture/incoming-event.ts'
import {
  hasRecordAt,
  isKeptRejectAt,
  keepFirstRejects,
  laneIndexAt,
  type OutcomeTable,
  outcomeCodeAt,
  rejectCountMax,
  rowCountOf,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import { getCookielessDropReason, importOnlyCode, outcomes, resourceOfOverQuotaCode } from '#core/capture/outcomes.ts'
import type { PreparedRequest } from '#core/capture/prepare-events.ts'
import { quotaOf } from '#core/capture/quota-resource.ts'
import { lanes } from '#core/events/captured-event.ts'
import type { Traffic } from '#core/events/log-stream.ts'
import { truncateForWarning } from '#core/events/warning-types.ts'
import type { JsonObject } from '#core/json.ts'
import { type EncodedRecords, writeProjectIdIntoRecords } from '#core/log/record-codec.ts'
import type { Project } from '#core/project.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { AnswerCompletion, CaptureOutcome } from './capture-outcome.ts'
import type { Unavailable } from './outage-handler.ts'
import { backlogReason, type ProjectBacklog } from './project-backlog.ts'
import type { RejectRecorder } from './record-rejects.ts'
import type { RefusedCounter } from './refused-counter.ts'

export interface EventAppenderOptions {
  readonly keeper: Pick<RejectRecorder, 'grant'>
  readonly unavailable: (error: unknown) => Unavailable
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogAppender
  /** Limits how many live records a project may have waiting; no limit when absent. */
  readonly backlog?: ProjectBacklog
  /** Limits how many import records a project may have waiting; no limit when absent. */
  readonly importBacklog?: ProjectBacklog
  readonly metrics: Metrics
}

/** How many items of a request have each outcome. */
export interface RequestTally {
  /** How many items are stored, by the index of their lane in `lanes`. */
  readonly stored: readonly number[]
  /** All other items, by the code of their outcome. */
  readonly others: ReadonlyMap<number, CountedItems>
}

interface CountedItems {
  count: number
  /** The first of these items, as far as it could be read. */
  readonly first: RefusedItem
}

/** A request whose outcome table is final. */
export interface FinalizedRequest<Answer> extends Pick<PreparedRequest, 'historicalMigration' | 'table'> {
  readonly tally: RequestTally
  /** Whether drops are final: the sender never resends dropped items, even when it must resend all other items. */
  readonly areDropsFinal: boolean
  /** Whether the request's rejects may be kept. */
  readonly keepsRejects: boolean
  /** How many events have a hot distinct id. */
  readonly hotCount: number
  readonly answer: Answer
}

/**
 * Counts the items of a final outcome table, which must still have the records of all items.
 * @param countsRejects false for a replay, whose rejects were counted when they first arrived.
 */
export function tallyItems(table: OutcomeTable, countsRejects: boolean): RequestTally {
  const stored = lanes.map(() => 0)
  let others: Map<number, CountedItems> | null = null
  for (let row = 0; row < rowCountOf(table); row++) {
    const code = outcomeCodeAt(table, row)
    if (outcomes[code]!.isStored) {
      stored[laneIndexAt(table, row)]!++
      continue
    }
    if (!countsRejects && isKeptRejectAt(table, row)) continue
    others ??= new Map()
    const known = others.get(code)
    if (known === undefined) {
      const { uuid, name, distinctId } = new TableRecords(table).at(row)
      others.set(code, { count: 1, first: { uuid, name, distinctId } })
    } else known.count++
  }
  return { stored, others: others ?? noOthers }
}

const noOthers: RequestTally['others'] = new Map()

export function createEventAppender(options: EventAppenderOptions) {
  const { keeper, unavailable, refused, eventLog, backlog, importBacklog, metrics } = options
  // Labels are resolved once: looking them up costs more than counting.
  const acceptedCounters = lanes.map(lane => metrics.eventsAccepted.labels({ lane }))
  return { append, refuseRequest }

  /**
   * Resolves when the log has the events and the rejects that may be kept.
   * @param request its table is already compacted.
   */
  async function append<Answer>(
    project: Project,
    request: FinalizedRequest<Answer>,
    complete?: AnswerCompletion<Answer>,
  ): Promise<CaptureOutcome<Answer>> {
    const { table, tally, hotCount } = request
    let { answer } = request
    const { live, import: imports } = table
    const units = takeBacklogUnits(backlog, project.id, live)
    const importUnits = units === null ? null : takeBacklogUnits(importBacklog, project.id, imports)
    if (units === null || importUnits === null) {
      if (units !== null) settle(project.id, units, 0, false)
      metrics.eventsRefused.inc({ reason: backlogReason }, (live?.recordCount ?? 0) + (imports?.recordCount ?? 0))
      return refuseRequest(project, request, unavailableNow)
    }
    if (complete !== undefined)
      try {
        answer = await complete(answer)
      } catch (error) {
        settle(project.id, units, importUnits, false)
        throw error
      }
    const events = appendEvents(project, table)
    const kept = appendRejects(project, request)
    try {
      await (kept.appended === null ? events : Promise.all([events, kept.appended]))
    } catch (error) {
      // When records went to both logs, one log may have stored its records although the other failed.
      settle(project.id, units, importUnits, units > 0 && importUnits > 0)
      return settleUnstored(project, request, kept, unavailable(error))
    }
    settle(project.id, units, importUnits, true)
    for (let lane = 0; lane < lanes.length; lane++)
      if (tally.stored[lane]! > 0) acceptedCounters[lane]!.inc(tally.stored[lane])
    for (const [code, items] of tally.others) countRefusedItems(project, code, items, kept.countOf.get(code) ?? 0)
    if (hotCount > 0) metrics.hotKeyEvents.inc(hotCount)
    return { kind: 'stored', answer }
  }

  /** Stores no event of the request, only what its sender will not send again. */
  function refuseRequest<Answer>(
    project: Project,
    request: FinalizedRequest<Answer>,
    outcome: Unavailable,
  ): Promise<CaptureOutcome<Answer>> {
    const rejects = request.areDropsFinal ? appendRejects(project, request) : noRejects
    return settleUnstored(project, request, rejects, outcome)
  }

  function settle(projectId: number, units: number, importUnits: number, isStored: boolean): void {
    if (units > 0) backlog!.settle(projectId, units, isStored)
    if (importUnits > 0) importBacklog!.settle(projectId, importUnits, isStored)
  }

  /** When drops are final, rejects without a record are counted now, since the sender does not resend them. */
  async function settleUnstored<Answer>(
    project: Project,
    { tally, areDropsFinal, answer }: FinalizedRequest<Answer>,
    { appended, countOf }: AppendedRejects,
    outcome: Unavailable,
  ): Promise<CaptureOutcome<Answer>> {
    if (areDropsFinal) {
      const areKept =
        (await appended?.then(
          () => true,
          () => false,
        )) === true
      for (const [code, items] of tally.others)
        if (isReject(code)) countRefusedItems(project, code, items, areKept ? (countOf.get(code) ?? 0) : 0)
    }
    return { ...outcome, answer }
  }

  /** @param keptCount how many of the items have a record in the log. */
  function countRefusedItems(project: Project, code: number, { count, first }: CountedItems, keptCount: number): void {
    const reason = outcomes[code]!.reason!
    metrics.eventsRefused.inc({ reason }, count)
    refused.count(project.id, reason, count - keptCount, createWarningDetails(project, code, first))
  }

  /** Appends as many of a request's rejects as may be stored now. */
  function appendRejects(project: Project, request: FinalizedRequest<unknown>): AppendedRejects {
    const { historicalMigration, table, tally, keepsRejects } = request
    if (!keepsRejects || tally.others === noOthers) return noRejects
    let rejectCount = 0
    for (const [code, { count }] of tally.others) if (isReject(code)) rejectCount += count
    if (rejectCount === 0) return noRejects
    keepFirstRejects(table, keeper.grant(project.id, Math.min(rejectCount, rejectCountMax)))
    if (table.rejects === null) return noRejects
    const countOf = new Map<number, number>()
    for (let row = 0; row < rowCountOf(table); row++) {
      const code = outcomeCodeAt(table, row)
      if (isKeptRejectAt(table, row) && hasRecordAt(table, row)) countOf.set(code, (countOf.get(code) ?? 0) + 1)
    }
    return { appended: appendRecords(historicalMigration ? 'import' : 'live', project, table.rejects), countOf }
  }

  /** A request that spans both logs fails if either append fails. An event that a retry stores twice counts once. */
  function appendEvents(project: Project, table: OutcomeTable): Promise<unknown> | undefined {
    const live = table.live === null ? undefined : appendRecords('live', project, table.live)
    if (table.import === null) return live
    const imports = appendRecords('import', project, table.import)
    return live === undefined ? imports : Promise.all([live, imports])
  }

  function appendRecords(traffic: Traffic, project: Project, records: EncodedRecords): Promise<void> {
    writeProjectIdIntoRecords(records.bytes, project.id)
    return eventLog.append(traffic, records)
  }
}

interface AppendedRejects {
  readonly appended: Promise<void> | null
  /** How many rejects are appended, by the code of their outcome. */
  readonly countOf: ReadonlyMap<number, number>
}

const noRejects: AppendedRejects = { appended: null, countOf: new Map() }
const unavailableNow: Unavailable = { kind: 'unavailable' }

function isReject(code: number): boolean {
  return outcomes[code]!.result === 'reject'
}

/** Details of the ingestion warning about items that were left out; undefined when they raise no warning. */
function createWarningDetails(
  project: Project,
  code: number,
  { uuid: eventUuid, name, distinctId }: RefusedItem,
): (() => JsonObject) | undefined {
  const cookieless = getCookielessDropReason(code)
  if (cookieless !== null) {
    const missingProperty = missingProperties[cookieless]
    return () => ({
      ...{ eventUuid, event: truncateForWarning(name), distinctId: truncateForWarning(distinctId) },
      ...(missingProperty !== undefined && { missingProperty }),
    })
  }
  if (code === importOnlyCode) return () => ({ setting: 'PENNON_IMPORT_ONLY' })
  const resource = resourceOfOverQuotaCode(code)
  if (resource === null) return undefined
  return () => ({ quota: quotaOf(project.quotas, resource), ...(eventUuid !== '' && { eventUuid }) })
}

/** @returns the units that the records count for; null when the project has too many records waiting. */
function takeBacklogUnits(backlog: ProjectBacklog | undefined, projectId: number, records: EncodedRecords | null) {
  return records === null || backlog === undefined ? 0 : backlog.take(projectId, records)
}
