// Takes stored rejects through capture once more, oldest first, a page at a time. What is stored is marked and stays in the
// list; doing it twice stores the same events, which count once. Bodies are read by whoever composes the service, since
// what they mean is the wire's business.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { IncomingRequest } from '#core/capture/incoming-event.ts'
import type { IncomingV1Request } from '#core/capture/incoming-v1-event.ts'
import { refusedFields } from '#core/capture/normalize-event.ts'
import type { PreparedEvents, RefusedRequest } from '#core/capture/prepare-events.ts'
import { prepareRejectedEvent, prepareRejectedRequest, prepareRejectedV1Request } from '#core/capture/prepare-reject.ts'
import type { RejectSource } from '#core/events/captured-event.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventStore, RejectedCursor, RejectedFilter, RejectedView } from '#ports/event-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { CaptureService } from './capture.ts'
import type { CaptureOutcome } from './capture-outcome.ts'

export interface RejectReplayDependencies {
  readonly events: Pick<EventStore, 'listRejected' | 'countRejected' | 'markReplayed'>
  readonly capture: Pick<CaptureService, 'capturePrepared'>
  /** Instead of it in a dry run. */
  readonly rehearsal: Pick<CaptureService, 'capturePrepared'>
  /** @param itemised bad events of a request leave the others alone. */
  readonly decode: (reject: RejectedView, itemised: boolean) => DecodedBody
  readonly clock: Clock
  readonly rerouteOlderThanMs: number | null
  readonly logger: Logger
}

type DecodedRequest =
  | { readonly kind: 'request'; readonly request: IncomingRequest }
  /** In v1 bad events always leave the others alone. `leftOutCount` items did not become one of its events. */
  | { readonly kind: 'v1_request'; readonly request: Omit<IncomingV1Request, 'token'>; readonly leftOutCount: number }

export type DecodedBody =
  | DecodedRequest
  | { readonly kind: 'refused'; readonly reason: string; readonly field: string }
  | { readonly kind: 'unreadable'; readonly reason: string }

export interface ReplayOptions {
  /** Everything but storing and marking. */
  readonly isDryRun: boolean
  /** Whether the good events of a request are stored beside bad ones; otherwise one bad event refuses the request again. */
  readonly isPartial: boolean
  readonly limit: number
}

export interface ReplayResult {
  readonly rejectId: string
  /** `cannot`: its body is not all there, or not one that can be read again. */
  readonly result: 'stored' | 'refused' | 'cannot'
  readonly reason: string | null
  readonly field: string | null
  /** Stored, or in a dry run fit to be. */
  readonly eventCount: number
  /** Left out of what was stored; 0 where nothing was. */
  readonly refusedCount: number
}

export interface ReplayReport {
  readonly results: readonly ReplayResult[]
  /** Where the next call goes on; null when nothing is left of the filter. */
  readonly next: RejectedCursor | null
  readonly remaining: number
}

export interface RejectReplay {
  /**
   * @throws PortError of the event store, or `event-log` when that takes nothing: what was stored until then is marked,
   *   and the same call may be made again.
   */
  replay(
    project: Project,
    filter: Omit<RejectedFilter, 'projectId' | 'oldestFirst'>,
    options: ReplayOptions,
    signal: AbortSignal,
  ): Promise<ReplayReport>
}

const pageCountMax = 100
/** Decoding gives the event loop back this often. */
const sliceMs = 8

export function createRejectReplay(dependencies: RejectReplayDependencies): RejectReplay {
  const { events, capture, rehearsal, decode, clock, logger } = dependencies

  return {
    async replay(project, filter, options, signal) {
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
      if (!options.isDryRun) logger.info({ projectId: project.id, storedCount, remaining }, 'rejects were replayed')
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
      append.catch(() => undefined) // until all of the page are looked at
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
    const nothing = { rejectId, eventCount: 0, refusedCount: 0, field: null }
    const decoded = decode(reject, options.isPartial)
    if (decoded.kind === 'unreadable') return { ...nothing, result: 'cannot', reason: decoded.reason }
    if (decoded.kind === 'refused')
      return { ...nothing, result: 'refused', reason: decoded.reason, field: decoded.field || null }
    const prepared = prepare(project, reject, reject.source!, decoded)
    if (prepared === null) return { ...nothing, result: 'cannot', reason: 'body_unknown' }
    if ('refusal' in prepared) {
      const { refusal } = prepared
      const field = reject.source?.kind === 'item' ? refusedFields[refusal] : prepared.field
      return { ...nothing, result: 'refused', reason: refusal, field }
    }
    const eventCount = acceptedCount(prepared)
    if (eventCount === 0) {
      const field = prepared.rejects[0]?.field || null
      return { ...nothing, result: 'refused', reason: firstReason(prepared), field }
    }
    const isV1 = decoded.kind === 'v1_request'
    const refusedCount = prepared.rejectedCount + (isV1 ? decoded.leftOutCount : 0)
    const stored = { rejectId, result: 'stored', reason: null, field: null, eventCount, refusedCount } as const
    const outcome = await (options.isDryRun ? rehearsal : capture).capturePrepared(
      {
        token: project.apiToken,
        protocol: isV1 ? 'v1' : 'v0',
        historicalMigration: decoded.request.historicalMigration,
        eventCount,
        // What is refused again is in the reject store already.
        outcome: { ...prepared, rejects: [], rejectedCount: 0, rejectedByReason: {} },
      },
      reject.receivedAtMs,
      '',
    )
    return resultOf(outcome, stored)
  }

  function prepare(
    project: Project,
    { rejectId, lane, importJobId, receivedAtMs }: RejectedView,
    source: RejectSource,
    decoded: DecodedRequest,
  ): PreparedEvents | RefusedRequest | null {
    const target = {
      projectId: project.id,
      token: project.apiToken,
      capturedAtMs: clock.nowMs(),
      rerouteOlderThanMs: dependencies.rerouteOlderThanMs,
    }
    const stored = { rejectId, lane, importJobId, receivedAtMs, source }
    const { token } = target
    if (decoded.kind === 'v1_request') return prepareRejectedV1Request({ ...decoded.request, token }, stored, target)
    const { request } = decoded
    if (source.kind === 'event') return prepareRejectedEvent(request.events[0]!, stored, target)
    return prepareRejectedRequest({ ...request, token }, stored, target)
  }
}

function resultOf(outcome: CaptureOutcome, stored: ReplayResult): ReplayResult {
  const refused = (reason: string): ReplayResult => ({
    ...stored,
    result: 'refused',
    reason,
    eventCount: 0,
    refusedCount: 0,
  })
  switch (outcome.kind) {
    case 'accepted': {
      const { overQuota } = outcome
      const [first] = overQuota.events
      if (first === undefined) return stored
      if (outcome.quotaLeftNothing) return refused(`${first.resource}_over_quota`)
      const refusedCount = stored.refusedCount + overQuota.count
      return { ...stored, eventCount: stored.eventCount - overQuota.count, refusedCount }
    }
    case 'over_quota':
      return refused(`${outcome.resource}_over_quota`)
    case 'discarded':
      return refused('non_historical_import_drop')
    case 'refused':
      return refused(outcome.refusal)
    // A project that this process does not serve any more.
    case 'unknown_project':
      return refused('unknown_api_key')
    case 'unavailable':
      throw new PortError('event-log', 'unavailable')
  }
}

function acceptedCount({ acceptedByLane }: PreparedEvents): number {
  return Object.values(acceptedByLane).reduce((sum, count) => sum + count, 0)
}

function firstReason({ rejects, rejectedByReason = {} }: PreparedEvents): string {
  return rejects[0]?.reason ?? Object.keys(rejectedByReason)[0] ?? 'dropped_performance_event'
}
