// The clock for everything that is deleted by age: log segments, warnings and counts, the data for undoing imports, stored
// rejects and recordings. The rule is in core/trusted-time.ts; this clock applies it and logs when deletion pauses.

import { isTimeTrusted, type TrustedTime, updateTrustedTime } from '#core/trusted-time.ts'
import type { Clock } from '#ports/clock.ts'
import type { TrustedTimeStore } from '#ports/state/worker-state.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

const everyMs = 10_000
/** How often the time is saved: a process that ends may fail to record this much of its running time. */
const saveEveryMs = 60_000

export type RetentionClock = ReturnType<typeof createRetentionClock>

export function createRetentionClock(options: {
  readonly clock: Clock
  readonly store: TrustedTimeStore
  readonly logger: Logger
  /** A clock that is never adjusted. Default: this process's monotonic clock. */
  readonly monotonicNowMs?: () => number
  /** Whether this worker holds the schedule lease, so that it runs the schedules. */
  readonly mayRun?: () => Promise<boolean>
}) {
  const { clock, store, logger, monotonicNowMs = () => performance.now(), mayRun } = options
  let looked: { readonly time: TrustedTime; readonly atMonotonicMs: number } | null = null
  let savedAtMs = Number.NEGATIVE_INFINITY

  /** Reads the wall clock, and updates and saves the trusted time. @throws PortError */
  async function checkNow(): Promise<void> {
    if (mayRun !== undefined && !(await mayRun())) {
      looked = null
      return
    }
    const atMonotonicMs = monotonicNowMs()
    const last = looked?.time ?? (await store.findTrustedTime())
    const time = updateTrustedTime(last, clock.nowMs(), looked === null ? 0 : atMonotonicMs - looked.atMonotonicMs)
    const hasChanged = last === null || isTimeTrusted(last) !== isTimeTrusted(time)
    if (hasChanged && last !== null) logTrustChange(time)
    looked = { time, atMonotonicMs }
    if (!hasChanged && atMonotonicMs - savedAtMs < saveEveryMs) return
    await store.saveTrustedTime(time)
    savedAtMs = atMonotonicMs
  }

  function logTrustChange(time: TrustedTime): void {
    if (isTimeTrusted(time)) logger.info('the system clock is trusted again: deletion by age resumes')
    else
      logger.warn(
        { aheadSeconds: Math.round(time.aheadMs / 1000) },
        'the system clock differs from the expected time: deletion by age pauses until the clock is back, or has been running for a day',
      )
  }

  return {
    /**
     * The trusted time, never later than the wall clock. It is 0, so that nothing counts as old, before the first look and
     * while another worker deletes.
     */
    nowMs: () => (looked === null ? 0 : Math.min(looked.time.atMs, clock.nowMs())),
    /** Whether the wall clock shows the expected time. False until the first look. */
    isTrusted: () => looked !== null && isTimeTrusted(looked.time),
    checkNow,
    run: (signal: AbortSignal) => runPeriodically(checkNow, { everyMs, what: 'checking the clock', logger, signal }),
  }
}
