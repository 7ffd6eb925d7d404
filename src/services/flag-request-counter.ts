// Counts evaluation requests per project and UTC day in memory and writes them down now and then: a counter per request
// in the database would cost more than the evaluation. A crash may lose what was counted since the last flush.

import type { Clock } from '#ports/clock.ts'
import type { UsageStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'

export interface FlagRequestCounter {
  count(projectId: number): void
  /** Writes what is left. */
  close(): Promise<void>
}

export interface FlagRequestCounterOptions {
  readonly usage: Pick<UsageStore, 'addFlagRequests'>
  readonly clock: Clock
  readonly logger: Logger
  readonly flushMs: number
}

export function startFlagRequestCounter(options: FlagRequestCounterOptions): FlagRequestCounter {
  const { usage, clock, logger } = options
  let counts = new Map<number, number>()
  let countedDay = dayOf(clock.nowMs())
  let waiting: { projectId: number; day: string; count: number }[] = []

  /** Moves what was counted under its day. */
  const closeDay = () => {
    for (const [projectId, count] of counts) waiting.push({ projectId, day: countedDay, count })
    counts = new Map()
    countedDay = dayOf(clock.nowMs())
  }
  const flush = async () => {
    closeDay()
    if (waiting.length === 0) return
    const flushed = waiting
    waiting = []
    try {
      await usage.addFlagRequests(flushed)
    } catch (cause) {
      waiting = [...flushed, ...waiting] // nothing was written: the next flush takes them along
      logger.warn({ err: cause }, 'flag requests could not be written down yet')
    }
  }
  const timer = setInterval(() => void flush(), options.flushMs)
  timer.unref()
  let dayEndsAtMs = endOfDay(clock.nowMs())

  return {
    count: projectId => {
      if (clock.nowMs() >= dayEndsAtMs) {
        closeDay()
        dayEndsAtMs = endOfDay(clock.nowMs())
      }
      counts.set(projectId, (counts.get(projectId) ?? 0) + 1)
    },
    close: async () => {
      clearInterval(timer)
      await flush()
    },
  }
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function endOfDay(ms: number): number {
  return (Math.floor(ms / 86_400_000) + 1) * 86_400_000
}
