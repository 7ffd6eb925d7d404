// Admits requests to a source one at a time, within its published rate limits and outside the pauses that it asked for.

import type { CallLimits } from './fetch-source.ts'
import type { FetchState } from './fetch-state.ts'
import { type FetchClock, type FetchWaiting, sleepUntil, sourceLimit } from './waiting.ts'

const hourMs = 3_600_000
/** Added to the hour of the hourly limit, since the source counts a call when it arrives, later than it is sent. */
const marginMs = 1_000
/** Waits longer than this are reported, since they are due to the hourly limit. */
const reportedWaitMs = 1_000

/**
 * @param calls stores the times of calls, so that they survive a restart. @param onWaiting is called with null when a wait
 * has ended.
 */
export function createCallRateLimiter(
  limits: CallLimits,
  calls: Pick<FetchState, 'addCall' | 'callsMs'>,
  clock: FetchClock,
  onWaiting: (waiting: FetchWaiting | null) => void,
) {
  let pause: FetchWaiting = { reason: '', untilMs: 0 }
  let turn: Promise<void> = Promise.resolve()
  const findWaiting = (): FetchWaiting => {
    const untilMs = computeNextCallMs(calls.callsMs(), limits, clock.nowMs())
    return pause.untilMs > untilMs ? pause : { reason: sourceLimit, untilMs }
  }
  const waitForNextCall = async (signal: AbortSignal) => {
    signal.throwIfAborted()
    const waiting = findWaiting()
    if (waiting.untilMs - clock.nowMs() > reportedWaitMs) onWaiting(waiting)
    await sleepUntil(clock, () => findWaiting().untilMs, signal)
    onWaiting(null)
    calls.addCall(clock.nowMs())
  }
  return {
    /** Blocks calls until `waiting.untilMs`, unless a longer pause is set already. */
    pause(waiting: FetchWaiting): void {
      if (waiting.untilMs > pause.untilMs) pause = waiting
    },
    /** Resolves when a call may be made, and counts it. */
    take(signal: AbortSignal): Promise<void> {
      const taken = turn.then(() => waitForNextCall(signal))
      // A failed wait rejects only its own caller's promise; the next caller just waits until it has settled.
      turn = taken.catch(() => undefined)
      return taken
    },
    /** For requests that do not count towards any limit. */
    untilPauseEnds: (signal: AbortSignal) => sleepUntil(clock, () => pause.untilMs, signal),
  }
}

/**
 * @param callsMs times of the calls of the last hour, ascending.
 * @returns the time of the next call: `nowMs` when it may be made at once.
 */
export function computeNextCallMs(
  callsMs: readonly number[],
  { perSecond, perHour }: CallLimits,
  nowMs: number,
): number {
  // The limit allows `count` calls in any span, so the `count`-th last call must be at least one span old.
  const computeFreeMs = (count: number | null, spanMs: number) => {
    const before = count === null ? undefined : callsMs[callsMs.length - count]
    return before === undefined ? 0 : before + spanMs
  }
  return Math.max(nowMs, computeFreeMs(perSecond, 1_000), computeFreeMs(perHour, hourMs + marginMs))
}

/** The least time that `callCount` calls take under these limits. */
export function computeLeastDurationMs(callCount: number, { perSecond, perHour }: CallLimits): number {
  const bySecond = perSecond === null ? 0 : (callCount / perSecond) * 1_000
  const byHour = perHour === null || callCount <= perHour ? 0 : (callCount / perHour) * hourMs
  return Math.round(Math.max(bySecond, byHour))
}
