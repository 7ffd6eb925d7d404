// Events per project and UTC day of acceptance, charged and imported apart, for `usage_daily`: computed from the event
// store over deduplicated rows, never counted up, so that retries and replays count once. A day is frozen after two.

import type { ChunkOutcome } from '#core/events/chunk.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventStore } from '#ports/event-store.ts'
import type { UsageStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from './run-periodically.ts'

/** Well below the 20 s within which usage is right. */
export const usageEveryMs = 10_000
const dayMs = 86_400_000
/** Today and the two days before; older ones are frozen. */
const openDayCount = 3
/** How far back a day may still be without figures. */
const lateMsMax = 35 * dayMs

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
  readonly clock: Clock
  readonly logger: Logger
  readonly everyMs?: number
}): UsageSchedule {
  const { events, usage, clock, logger } = options
  const due = new Set<number>()
  let lastDay = ''

  async function computeNow(): Promise<void> {
    const nowMs = clock.nowMs()
    const today = utcDay(nowMs)
    const openDays = Array.from({ length: openDayCount }, (_, back) => utcDay(nowMs - back * dayMs))
    if (today !== lastDay) {
      // A worker that was away has days that nobody computed: they get their figures now, and are frozen with them.
      for (const projectId of await usage.listProjectIds())
        await compute(projectId, openDays, utcDay(nowMs - lateMsMax))
      lastDay = today
    }
    for (const projectId of [...due]) {
      due.delete(projectId)
      try {
        await compute(projectId, openDays, openDays.at(-1)!)
      } catch (cause) {
        due.add(projectId)
        throw cause
      }
    }
  }

  /** An open day without events is written as zero, since it may have had some before an import was discarded. */
  async function compute(projectId: number, openDays: readonly string[], fromDay: string): Promise<void> {
    const counted = await events.countUsage(projectId, fromDay, openDays[0]!)
    const days = new Map(counted.map(row => [row.day, row]))
    for (const day of openDays) if (!days.has(day)) days.set(day, { day, eventsCharged: 0, eventsImported: 0 })
    await usage.saveEventCounts(projectId, [...days.values()], openDays.at(-1)!)
  }

  return {
    noteProcessed(outcomes) {
      for (const { projectId, outcome } of outcomes) if (outcome === 'stored') due.add(projectId)
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

function utcDay(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}
