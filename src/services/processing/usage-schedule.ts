// Events per project and UTC day of charge, live and imported apart, for `usage_daily`: computed from the event store
// over deduplicated rows, never counted up, so that retries and replays count once. A day is frozen after two, and never
// while live events of it still wait in the log. Where the event store lost rows of a day, the figures that it had stay.

import type { ChunkOutcome } from '#core/processing/chunk.ts'
import { thinnedReason } from '#core/processing/thin-flag-calls.ts'
import { dayMs } from '#core/time.ts'
import { noEventUsage, utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { EventStore } from '#ports/event-store.ts'
import type { ManagementStore, UsageStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'
import type { EventStoreKeeper, LostSpan } from './keep-event-store.ts'

/** Well below the 20 s within which usage is right. */
export const usageEveryMs = 10_000
/** Today and the two days before; older ones are frozen. */
const openDayCount = 3
/** How far back a day may still be without figures. */
const lateMsMax = 35 * dayMs
/** A record that claims to wait for longer has a time that is wrong. */
const waitingMsMax = 400 * dayMs

export interface UsageSchedule {
  /** Tells that events of these projects were stored. */
  noteProcessed(outcomes: readonly ChunkOutcome[]): void
  /** Computes what changed, every 10 s; everything once after a start, and again when a day begins. */
  run(signal: AbortSignal): Promise<void>
  /** One round, for those who cannot wait. @throws PortError; what failed stays due. */
  computeNow(): Promise<void>
}

export function createUsageSchedule(options: {
  readonly events: Pick<EventStore, 'countUsage'>
  readonly usage: Pick<UsageStore, 'saveEventCounts' | 'listProjectIds'>
  readonly log: Pick<EventLogReader, 'status'>
  /** Answers the durable position, not what the worker holds in memory. */
  readonly positions: Pick<ManagementStore, 'findLogPosition'>
  /** When events were accepted that are missing in the event store now. */
  readonly findLostSpans: EventStoreKeeper['findLostSpans']
  readonly clock: Clock
  readonly logger: Logger
  readonly everyMs?: number
}): UsageSchedule {
  const { events, usage, log, positions, findLostSpans, clock, logger } = options
  const due = new Set<number>()
  let lastDay = ''
  /** The first day that the last complete round left open: what was processed since may belong to it. */
  let openSince: string | null = null

  async function computeNow(): Promise<void> {
    const nowMs = clock.nowMs()
    const today = utcDay(nowMs)
    const openDays = daysBetween((await oldestWaitingMs(nowMs)) - (openDayCount - 1) * dayMs, nowMs)
    const openFrom = openDays[0]!
    const lost = today === lastDay && due.size === 0 ? [] : await findLostSpans()
    if (today !== lastDay) {
      // A worker that was away left days uncomputed: they get their figures now, and are frozen with them.
      const fromDay = earlier(openFrom, utcDay(nowMs - lateMsMax))
      for (const projectId of await usage.listProjectIds()) await compute(projectId, openDays, fromDay, lost)
      lastDay = today
    }
    const fromDay = openSince === null ? openFrom : earlier(openFrom, openSince)
    for (const projectId of [...due]) {
      due.delete(projectId)
      try {
        await compute(projectId, openDays, fromDay, lost)
      } catch (cause) {
        due.add(projectId)
        throw cause
      }
    }
    openSince = openFrom
  }

  /** When the oldest live event that is not processed yet was accepted; now, when there is none. */
  async function oldestWaitingMs(nowMs: number): Promise<number> {
    const { offset } = await positions.findLogPosition('main')
    const { appendedAtMs } = await log.status('main', offset)
    return Math.max(Math.min(nowMs, appendedAtMs ?? nowMs), nowMs - waitingMsMax)
  }

  /** An open day without events is written as zero, since it may have had some before an import was discarded. */
  async function compute(
    projectId: number,
    openDays: readonly string[],
    fromDay: string,
    lost: readonly LostSpan[],
  ): Promise<void> {
    const counted = await events.countUsage(projectId, fromDay, openDays.at(-1)!)
    const days = new Map(counted.map(row => [row.day, row]))
    for (const day of openDays) if (!days.has(day)) days.set(day, { day, ...noEventUsage })
    const lostDays = [...days.keys()].filter(day => lost.some(span => touches(span, day)))
    await usage.saveEventCounts(projectId, [...days.values()], openDays[0]!, lostDays)
  }

  return {
    noteProcessed(outcomes) {
      for (const { projectId, outcome, reason } of outcomes)
        if (outcome === 'stored' || reason === thinnedReason) due.add(projectId)
    },
    computeNow,
    run: signal =>
      runPeriodically(computeNow, {
        everyMs: options.everyMs ?? usageEveryMs,
        what: 'computing usage',
        logger,
        signal,
      }),
  }
}

/** The days of both times and those between, ascending. */
function daysBetween(fromMs: number, toMs: number): string[] {
  const from = Math.floor(fromMs / dayMs)
  return Array.from({ length: Math.floor(toMs / dayMs) - from + 1 }, (_, index) => utcDay((from + index) * dayMs))
}

function touches({ oldestMs, newestMs }: LostSpan, day: string): boolean {
  return (oldestMs === null || utcDay(oldestMs) <= day) && (newestMs === null || day <= utcDay(newestMs))
}

function earlier(a: string, b: string): string {
  return a < b ? a : b
}
