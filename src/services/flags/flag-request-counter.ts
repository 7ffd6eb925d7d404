// Counts evaluation requests per project and UTC day in memory and writes them down now and then: a counter per request
// in the database would cost more than the evaluation. A crash may lose what was counted since the last flush.
// After each flush the month's sums of projects with a quota are read back, in which other fronts' requests are, so each
// front knows within two flushes what all have counted, and a restarted one from its start.

import type { Project } from '#core/project.ts'
import { endOfUtcDay, monthOf, utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { UsageStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'

export interface FlagRequestCounter {
  count(projectId: number): void
  /** Whether the project has used up its flag requests of this UTC month; with a quota of 0 it always has. */
  isOverQuota(project: Project): boolean
  /** Its definitions changed: whether it has a quota, and how large that is, stands in them. */
  follow(project: Project): void
  /** Resolves when what followed projects used this month was read, unless that fails: then until the next flush they have used what was counted here. */
  caughtUp(): Promise<void>
  /** Writes what is left. */
  close(): Promise<void>
}

export interface FlagRequestCounterOptions {
  readonly usage: Pick<UsageStore, 'addFlagRequests' | 'sumFlagRequests'>
  readonly clock: Clock
  readonly logger: Logger
  readonly flushMs: number
}

/** What a project with a quota used this month. */
interface Use {
  /** The count of all fronts, as last read; undefined before the first read. */
  stored: number | undefined
  /** Counted here and not in `stored`. */
  counted: number
}

export function startFlagRequestCounter(options: FlagRequestCounterOptions): FlagRequestCounter {
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
    count(projectId) {
      followClock()
      counts.set(projectId, (counts.get(projectId) ?? 0) + 1)
      const use = uses.get(projectId)
      if (use !== undefined) use.counted++
    },
    isOverQuota({ id, quotas: { featureFlagRequests: quota } }) {
      if (quota === null || quota === 0) return quota === 0
      followClock()
      const use = uses.get(id)
      return use !== undefined && (use.stored ?? 0) + use.counted >= quota
    },
    follow({ id, quotas: { featureFlagRequests: quota } }) {
      if (quota === null || quota === 0) uses.delete(id)
      else if (!uses.has(id)) uses.set(id, { stored: undefined, counted: 0 })
    },
    async caughtUp() {
      if (!hasUnread()) return
      await flushAndRead()
      if (hasUnread()) await flushAndRead() // the first one may have been under way before
    },
    async close() {
      clearInterval(timer)
      await running
      await flush()
    },
  }

  function hasUnread(): boolean {
    return uses.values().some(use => use.stored === undefined)
  }

  function followClock(): void {
    if (clock.nowMs() >= dayEndsAtMs) closeDay()
  }

  /** Moves what was counted under its day. A new month begins with nothing used. */
  function closeDay(): void {
    for (const [projectId, count] of counts) waiting.push({ projectId, day: countedDay, count })
    counts = new Map()
    const monthBefore = monthOf(countedDay)
    countedDay = utcDay(clock.nowMs())
    dayEndsAtMs = endOfUtcDay(clock.nowMs())
    if (monthOf(countedDay) !== monthBefore) for (const id of uses.keys()) uses.set(id, { stored: 0, counted: 0 })
  }

  /** One at a time, in this order: what is read has to hold what was written. */
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
      waiting = [...flushed, ...waiting] // nothing was written: the next flush takes them along
      logger.warn({ err: cause }, 'flag requests could not be written down yet')
      return false
    }
  }

  /** @param before what had been counted when all of it was about to be written. */
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
        // Otherwise its month is over, or it was followed anew meanwhile.
        if (uses.get(id) !== use) continue
        use.stored = sumOf.get(id) ?? 0
        use.counted -= counted
      }
    } catch (cause) {
      logger.warn(
        { err: cause },
        'the flag requests of this month could not be read; quotas go by what was counted here',
      )
    }
  }
}
