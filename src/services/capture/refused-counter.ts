// Counts received events that leave no record in the log, by project, UTC day and reason. The worker counts the outcomes of
// records; together, the two count every event that arrives under a known key exactly once. Counts stay in memory and are
// written every few seconds, so a crash may lose the last counts; no request waits for the write.

import type { JsonObject } from '#core/json.ts'
import { utcDay } from '#core/usage.ts'
import type { Clock } from '#ports/clock.ts'
import type { RefusedCount, RefusedStore } from '#ports/state/accounting-store.ts'
import type { Logger } from '#telemetry/log.ts'

export type RefusedCounter = ReturnType<typeof startRefusedItemCounter>

/** How many combinations of project, day and reason are counted; more are not counted until a flush succeeds. */
const countedMax = 10_000
/** Rows in one transaction. */
const rowsPerWrite = 500

type Counted = { -readonly [K in keyof RefusedCount]: RefusedCount[K] }

export function startRefusedItemCounter(options: {
  readonly store: Pick<RefusedStore, 'addRefused'>
  readonly clock: Clock
  readonly logger: Logger
  readonly flushMs: number
}) {
  const { store, clock, logger } = options
  let counts = new Map<string, Counted>()
  let running: Promise<void> | undefined
  let isFailing = false
  let isFull = false

  const timer = setInterval(() => void flushOnce(), options.flushMs)
  timer.unref()

  return {
    /**
     * @param reason a code of docs/wire/errors.md.
     * @param warning details of the ingestion warning that these events raise under that reason; called once per flush.
     */
    count(projectId: number, reason: string, count: number, warning?: () => JsonObject): void {
      if (count > 0) add({ projectId, reason, count, warning })
    },
    /** Writes what is counted so far. A failed write is tried again later. */
    flush: flushNow,
    /** Writes the remaining counts. */
    async close(): Promise<void> {
      clearInterval(timer)
      await flushNow()
    },
  }

  /** Also writes what was counted after the start of a flush that is still running. */
  async function flushNow(): Promise<void> {
    await running
    await flushOnce()
  }

  function add(counted: Pick<Counted, 'projectId' | 'reason' | 'count'> & { warning: (() => JsonObject) | undefined }) {
    const { projectId, reason, count, warning } = counted
    const lastSeenMs = clock.nowMs()
    const day = utcDay(lastSeenMs)
    const key = `${projectId} ${day} ${reason}`
    const known = counts.get(key)
    if (known !== undefined) {
      known.count += count
      known.lastSeenMs = lastSeenMs
    } else if (counts.size < countedMax) {
      counts.set(key, { projectId, day, reason, count, lastSeenMs, warning: warning?.() ?? null })
    } else if (!isFull) {
      isFull = true
      logger.warn('too many projects and reasons of refused events to count in memory; some are not counted')
    }
  }

  function flushOnce(): Promise<void> {
    running ??= flush().finally(() => {
      running = undefined
    })
    return running
  }

  /** The next flush retries failed writes. A write whose answer was lost may be counted twice. */
  async function flush(): Promise<void> {
    if (counts.size === 0) return
    const rows = [...counts.values()]
    counts = new Map()
    isFull = false
    for (let start = 0; start < rows.length; start += rowsPerWrite) {
      try {
        await store.addRefused(rows.slice(start, start + rowsPerWrite))
        isFailing = false
      } catch (cause) {
        putBack(rows.slice(start))
        if (!isFailing) logger.warn({ err: cause }, 'cannot save the counts of refused events; retrying')
        isFailing = true
        return
      }
    }
  }

  function putBack(rows: readonly Counted[]): void {
    for (const row of rows) {
      const key = `${row.projectId} ${row.day} ${row.reason}`
      const newer = counts.get(key)
      if (newer !== undefined) {
        newer.count += row.count
        newer.warning ??= row.warning
      } else if (counts.size < countedMax) counts.set(key, row)
    }
  }
}
