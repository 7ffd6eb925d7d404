// When the published limits of a source allow the next call. The job folder stores the times of past calls, so that they
// survive a restart.

export interface CallLimits {
  readonly perSecond: number | null
  readonly perHour: number | null
  /** Concurrent requests, at least 1. */
  readonly atOnce: number
}

export const hourMs = 3_600_000
/** The source counts a call when it arrives, which is later than when it is sent. */
const marginMs = 1_000

/**
 * @param callsMs times of the calls of the last hour, ascending.
 * @returns the time of the next call: `nowMs` when it may be made at once.
 */
export function nextCallAtMs(callsMs: readonly number[], { perSecond, perHour }: CallLimits, nowMs: number): number {
  return Math.max(nowMs, freeAtMs(callsMs, perSecond, 1_000), freeAtMs(callsMs, perHour, hourMs + marginMs))
}

/** Whether the wait is for an hourly limit, which is worth reporting, and not for the limit per second. */
export function isLongWait(untilMs: number, nowMs: number): boolean {
  return untilMs - nowMs > 1_000
}

/** The least time that `callCount` calls take under these limits. */
export function leastDurationMs(callCount: number, { perSecond, perHour }: CallLimits): number {
  const bySecond = perSecond === null ? 0 : (callCount / perSecond) * 1_000
  const byHour = perHour === null || callCount <= perHour ? 0 : (callCount / perHour) * hourMs
  return Math.round(Math.max(bySecond, byHour))
}

/** The limit allows `count` calls in any span, so the call `count` places back must be at least one span old. */
function freeAtMs(callsMs: readonly number[], count: number | null, spanMs: number): number {
  const before = count === null ? undefined : callsMs[callsMs.length - count]
  return before === undefined ? 0 : before + spanMs
}
