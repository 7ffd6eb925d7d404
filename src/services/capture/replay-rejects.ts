// Sends stored rejects through capture again, oldest first, a page at a time. A reject whose events are stored is marked
// and stays in the list; a second replay stores the same events, which count once. The decoder of bodies is passed in,
// since only the parsers in `wire` know what bodies mean.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { IncomingEvent, IncomingRequest, IncomingV1Request } from '#core/capture/incoming-event.ts'
import { refusedFields } from '#core/capture/normalize-event.ts'
import {
  isKeptRejectAt,
  type OutcomeTable,
  outcomeAt,
  outcomeCodeAt,
  readRequestRefusal,
  rowCountOf,
  TableRecords,
} from '#core/capture/outcome-table.ts'
import { performanceCode } from '#core/capture/outcomes.ts'
import { prepareRejectedEvent, prepareRejectedRequest, prepareRejectedV1Request } from '#core/capture/prepare-reject.ts'
import type { RejectSource } from '#core/events/captured-event.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { RejectedCursor, RejectedFilter, RejectedView, RejectStore } from '#ports/events/reject-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { CaptureService } from './capture.ts'

export interface RejectReplayOptions {
  readonly events: RejectStore
  readonly capture: Pick<CaptureService, 'capture'>
  /** Used instead of `capture` in a dry run. */
  readonly rehearsal: Pick<CaptureService, 'capture'>
  /** @param itemised whether a request's good events are accepted despite its bad ones. */
  readonly decode: (reject: RejectedView, itemised: boolean) => DecodedBody
  readonly clock: Clock
  readonly rerouteOlderThanMs: number | null
  readonly logger: Logger
}

type DecodedRequest =
  | { readonly kind: 'request'; readonly request: IncomingRequest }
  /** v1 always accepts good events despite bad ones. `leftOutCount` items of the body are not among its events. */
  | { readonly kind: 'v1_request'; readonly request: Omit<IncomingV1Request, 'token'>; readonly leftOutCount: number }

export type DecodedBody =
  | DecodedRequest
  | { readonly kind: 'refused'; readonly reason: string; readonly field: string }
  | { readonly kind: 'unreadable'; readonly reason: string }

export interface ReplayOptions {
  /** Does everything except storing events and marking rejects. */
  readonly isDryRun: boolean
  /**
   * Whether the good events of a request are stored despite bad ones; otherwise one bad event refuses the request again.
   */
  readonly isPartial: boolean
  readonly limit: number
}

export interface ReplayResult {
  readonly rejectId: string
  /** `cannot`: the body is incomplete or cannot be read again. */
  readonly result: 'stored' | 'refused' | 'cannot'
  readonly reason: string | null
  readonly field: string | null
  /** Events that were stored or, in a dry run, would be stored. */
  readonly eventCount: number
  /** Items that were left out although other items of the request were stored; 0 when nothing was stored. */
  readonly refusedCount: number
}

type NothingStored = Omit<ReplayResult, 'result' | 'reason'>

export interface ReplayReport {
  readonly results: readonly ReplayResult[]
  /** Where the next call continues; null when no more rejects match the filter. */
  readonly next: RejectedCursor | null
  readonly remaining: number
}

export type RejectReplay = ReturnType<typeof createRejectReplayer>

const pageCountMax = 100
/** How long decoding runs before it yields to the event loop. */
const sliceMs = 8

export function createRejectReplayer(options: RejectReplayOptions) {
  const { events, capture, rehearsal, decode, clock, logger } = options

  return {
    /**
     * @throws PortError of the event store, or of `event-log` when the log stores nothing. Anything stored until then is
     *   marked, and the same call may be repeated.
     */
    async replay(
      project: Project,
      filter: Omit<RejectedFilter, 'projectId' | 'oldestFirst'>,
      options: ReplayOptions,
      signal: AbortSignal,
    ): Promise<ReplayReport> {
      const results: ReplayResult[] = []
      const query = { ...filter, projectId: project.id, oldestFirst: true }
      let beyond = filter.beyond ?? null
      while (results.length < options.limit) {
        const limit = Math.min(pageCountMax, options.limit - results.length)
        const page = await events.listRejected({ ...query, ...(beyond && { beyond }), limit }, signal)
        results.push(...(await replayPage(project, page.rejected, options)))
        beyond = page.next
        if (beyond === null || signal.aborted) break
      }
      const remaining = beyond === null ? 0 : await events.countRejected({ ...query, beyond }, signal)
      const storedCount = results.filter(({ result }) => result === 'stored').length
      if (!options.isDryRun) logger.info({ projectId: project.id, storedCount, remaining }, 'replayed rejects')
      return { results, next: beyond, remaining }
    },
  }

  async function replayPage(
    project: Project,
    rejects: readonly RejectedView[],
    options: ReplayOptions,
  ): Promise<ReplayResult[]> {
    const appends: Promise<ReplayResult>[] = []
    let sliceEndsMs = performance.now() + sliceMs
    for (const reject of rejects) {
      const append = replayOne(project, reject, options)
      append.catch(() => undefined) // errors are handled below, once the whole page has settled
      appends.push(append)
      if (performance.now() < sliceEndsMs) continue
      await nextTurn()
      sliceEndsMs = performance.now() + sliceMs
    }
    const settled = await Promise.allSettled(appends)
    const replayedAtMs = clock.nowMs()
    const stored = rejects.filter((_, index) => {
      const outcome = settled[index]!
      return outcome.status === 'fulfilled' && outcome.value.result === 'stored'
    })
    if (!options.isDryRun)
      await events.markReplayed(
        stored.map(({ projectId, rejectId, receivedAtMs }) => ({ projectId, rejectId, receivedAtMs, replayedAtMs })),
      )
    return settled.map(outcome => {
      if (outcome.status === 'rejected') throw outcome.reason
      return outcome.value
    })
  }

  async function replayOne(project: Project, reject: RejectedView, options: ReplayOptions): Promise<ReplayResult> {
    const { rejectId } = reject
    const nothing: NothingStored = { rejectId, eventCount: 0, refusedCount: 0, field: null }
    const decoded = decode(reject, options.isPartial)
    if (decoded.kind === 'unreadable') return { ...nothing, result: 'cannot', reason: decoded.reason }
    if (decoded.kind === 'refused')
      return { ...nothing, result: 'refused', reason: decoded.reason, field: decoded.field || null }
    const table = prepareReplay(project, reject, reject.source!, decoded)
    if (table === null) return { ...nothing, result: 'cannot', reason: 'body_unknown' }
    const refusal = readRequestRefusal(table)
    if (refusal !== null) {
      const field = reject.source?.kind === 'item' ? refusedFields[refusal.reason] : refusal.field
      return { ...nothing, result: 'refused', reason: refusal.reason, field }
    }
    if (countRows(table).stored === 0) return { ...nothing, result: 'refused', ...findRejection(table) }
    const isV1 = decoded.kind === 'v1_request'
    const leftOutCount = isV1 ? decoded.leftOutCount : 0
    const outcome = await (options.isDryRun ? rehearsal : capture).capture(
      {
        token: project.apiToken,
        protocol: isV1 ? 'v1' : 'v0',
        historicalMigration: decoded.request.historicalMigration,
        table,
        body: '',
        isReplay: true,
      },
      reject.receivedAtMs,
      table => toReplayResult(table, nothing, leftOutCount),
    )
    switch (outcome.kind) {
      case 'stored':
        return outcome.answer
      // This process no longer serves the project.
      case 'unknown_project':
        return { ...nothing, result: 'refused', reason: 'unknown_api_key' }
      case 'refused':
        throw new Error(`an item refused a replay that had no such item: ${outcome.refusal}`)
      case 'unavailable':
        throw new PortError('event-log', 'unavailable')
    }
  }

  function prepareReplay(
    project: Project,
    { rejectId, lane, importJobId, receivedAtMs }: RejectedView,
    source: RejectSource,
    decoded: DecodedRequest,
  ): OutcomeTable | null {
    const target = {
      token: project.apiToken,
      capturedAtMs: clock.nowMs(),
      rerouteOlderThanMs: options.rerouteOlderThanMs,
    }
    const stored = { rejectId, lane, importJobId, receivedAtMs, source }
    const { token } = target
    if (decoded.kind === 'v1_request') return prepareRejectedV1Request({ ...decoded.request, token }, stored, target)
    const { request } = decoded
    if (source.kind === 'event') return prepareRejectedEvent(request.items[0] as IncomingEvent, stored, target)
    return prepareRejectedRequest({ ...request, token }, stored, target)
  }
}

/** Turns a final table into a replay's result. @param leftOutCount items of the body that are not in the table. */
function toReplayResult(table: OutcomeTable, nothing: NothingStored, leftOutCount: number): ReplayResult {
  const { stored, refused } = countRows(table)
  if (stored === 0) return { ...nothing, result: 'refused', reason: findFirstDrop(table) ?? 'unknown_api_key' }
  return { ...nothing, result: 'stored', reason: null, eventCount: stored, refusedCount: refused + leftOutCount }
}

/** Why the first event of a table without stored events was dropped; null when none was. */
function findFirstDrop(table: OutcomeTable): string | null {
  for (let row = 0; row < rowCountOf(table); row++) {
    const { result, reason } = outcomeAt(table, row)
    if (result === 'drop' && outcomeCodeAt(table, row) !== performanceCode) return reason!
  }
  return null
}

function countRows(table: OutcomeTable): { readonly stored: number; readonly refused: number } {
  let stored = 0
  let refused = 0
  for (let row = 0; row < rowCountOf(table); row++) {
    if (outcomeAt(table, row).isStored) stored++
    else if (outcomeCodeAt(table, row) !== performanceCode) refused++
  }
  return { stored, refused }
}

/** Why nothing can be stored: the fault of the first reject, or the reason for which an event is dropped. */
function findRejection(table: OutcomeTable): { readonly reason: string; readonly field: string | null } {
  for (let row = 0; row < rowCountOf(table); row++) {
    if (!isKeptRejectAt(table, row)) continue
    return { reason: outcomeAt(table, row).reason!, field: new TableRecords(table).at(row).field || null }
  }
  return { reason: findFirstDrop(table) ?? 'dropped_performance_event', field: null }
}
