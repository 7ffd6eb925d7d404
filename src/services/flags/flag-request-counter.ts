// Counts evaluation requests per project and UTC day in memory and writes the counts now and then, since one database write
// per request would cost more than the evaluation. A crash may lose the counts since the last flush. After each flush, the
// month's totals of projects with a quota are read back. They include other fronts' requests, so each front knows all
// counts within two flushes, and a restarted front knows them from its start.

import type { Project } from '#core/project.ts'
import { endOfUtcDay, monthOf, utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { UsageStore } from '#ports/state/accounting-store.ts'
import type { Logger } from '#telemetry/log.ts'

export type FlagRequestCounter = ReturnType<typeof startFlagRequestCounter>

export interface FlagRequestCounterOptions {
  readonly usage: Pick<UsageStore, 'addFlagRequests' | 'sumFlagRequests'>
  readonly clock: Clock
  readonly logger: Logger
  readonly flushMs: number
}

/** How many requests a project with a quota has used this month. */
interface Use {
  /** The count of all fronts, as last read; undefined before the first read. */
  stored: number | undefined
  /** Requests counted here that are not in `stored`. */
  counted: number
}

export function startFlagRequestCounter(options: FlagRequestCounterOptions) {
  const { usage, clock, logger } = options
  let counts = new Map<number, number>()
  let countedDay = utcDay(clock.nowMs())
  let dayEndsAtMs = endOfUtcDay(clock.nowMs())
  let waiting: { projectId: number; day: string; count: number }[] = []
  const uses = new Map<number, Use>()
  let running: Promise<void> | undefined

  const timer = setInterval(() => void flushAndRead(), options.flushMs)
  timer.unref()

  return {
    count(projectId: number) {
      closeEndedDay()
      counts.set(projectId, (counts.get(projectId) ?? 0) + 1)
      const use = uses.get(projectId)
      if (use !== undefined) use.counted++
    },
    /** Whether the project has used up its flag requests of this UTC month; with a quota of 0 it always has. */
    isOverQuota({ id, quotas: { featureFlagRequests: quota } }: Project) {
      if (quota === null || quota === 0) return quota === 0
      closeEndedDay()
      const use = uses.get(id)
      return use !== undefined && (use.stored ?? 0) + use.counted >= quota
    },
    /** Call when a project's definitions change, since they hold its quota. */
    follow({ id, quotas: { featureFlagRequests: quota } }: Project) {
      if (quota === null || quota === 0) uses.delete(id)
      else if (!uses.has(id)) uses.set(id, { stored: undefined, counted: 0 })
    },
    /**
     * Resolves when this month's usage of all followed projects has been read. If the read failed, only the requests
     * counted here are known until the next flush.
     */
    async caughtUp() {
      if (!hasUnread()) return
      await flushAndRead()
      if (hasUnread()) await flushAndRead() // the first call may have joined one that began earlier
    },
    /** Writes the remaining counts. */
    async close() {
      clearInterval(timer)
      await running
      await flush()
    },
  }

  function hasUnread(): boolean {
    return uses.values().some(use => use.stored === undefined)
  }

  function closeEndedDay(): void {
    if (clock.nowMs() >= dayEndsAtMs) closeDay()
  }

  /**
   * Moves the counts so far to the counts to be written, and starts counting for the current day. A new month begins with
   * nothing used.
   */
  function closeDay(): void {
    for (const [projectId, count] of counts) waiting.push({ projectId, day: countedDay, count })
    counts = new Map()
    const monthBefore = monthOf(countedDay)
    countedDay = utcDay(clock.nowMs())
    dayEndsAtMs = endOfUtcDay(clock.nowMs())
    if (monthOf(countedDay) !== monthBefore) for (const id of uses.keys()) uses.set(id, { stored: 0, counted: 0 })
  }

  /** Runs once at a time, and writes before it reads: the sums must include what was written. */
  function flushAndRead(): Promise<void> {
    running ??= (async () => {
      try {
        const before = Array.from(uses, ([id, use]) => ({ id, use, counted: use.counted }))
        const month = monthOf(utcDay(clock.nowMs()))
        if (await flush()) await readSums(month, before)
      } finally {
        running = undefined
      }
    })()
    return running
  }

  async function flush(): Promise<boolean> {
    closeDay()
    if (waiting.length === 0) return true
    const flushed = waiting
    waiting = []
    try {
      await usage.addFlagRequests(flushed)
      return true
    } catch (cause) {
      waiting = [...flushed, ...waiting] // nothing was written, so the next flush tries again
      logger.warn({ err: cause }, 'cannot save the counts of flag requests yet; retrying')
      return false
    }
  }

  /** @param before the counts just before all of them were written. */
  async function readSums(
    month: string,
    before: readonly { readonly id: number; readonly use: Use; readonly counted: number }[],
  ): Promise<void> {
    if (before.length === 0) return
    try {
      const ids = before.map(({ id }) => id)
      const sums = await usage.sumFlagRequests(ids, `${month}-01`, `${month}-31`)
      const sumOf = new Map(sums.map(({ projectId, count }) => [projectId, count]))
      for (const { id, use, counted } of before) {
        // A replaced entry means that the month has ended or that the project was followed again.
        if (uses.get(id) !== use) continue
        use.stored = sumOf.get(id) ?? 0
        use.counted -= counted
      }
    } catch (cause) {
      logger.warn(
        { err: cause },
        "cannot read this month's flag requests; enforcing quotas with the requests counted by this process",
      )
    }
  }
}
