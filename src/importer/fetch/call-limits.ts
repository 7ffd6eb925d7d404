// When a source may be asked next, by its published limits. The times of past calls are kept in the folder of the job,
// so that a restart does not forget them.

export interface CallLimits {
  readonly perSecond: number | null
  readonly perHour: number | null
  /** Requests under way at the same time, at least 1. */
  readonly atOnce: number
}

export const hourMs = 3_600_000
/** A source counts from the receipt of a call, we from its sending. */
const marginMs = 1_000

/**
 * @param callsMs times of the calls of the last hour, ascending.
 * @returns the time of the next call: `nowMs` when it may be made at once.
 */
export function nextCallAtMs(callsMs: readonly number[], { perSecond, perHour }: CallLimits, nowMs: number): number {
  return Math.max(nowMs, freeAtMs(callsMs, perSecond, 1_000), freeAtMs(callsMs, perHour, hourMs + marginMs))
}

/** Whether it is the limit of an hour, which is worth telling, that the next call waits for. */
export function isLongWait(untilMs: number, nowMs: number): boolean {
  return untilMs - nowMs > 1_000
}

/** How long `callCount` calls take at least, when nothing but the limits holds them up. */
export function leastDurationMs(callCount: number, { perSecond, perHour }: CallLimits): number {
  const bySecond = perSecond === null ? 0 : (callCount / perSecond) * 1_000
  const byHour = perHour === null || callCount <= perHour ? 0 : (callCount / perHour) * hourMs
  return Math.round(Math.max(bySecond, byHour))
}

/** The limit allows `count` calls in any span: the call `count` places back has to be a whole span ago. */
function freeAtMs(callsMs: readonly number[], count: number | null, spanMs: number): number {
  const before = count === null ? undefined : callsMs[callsMs.length - count]
  return before === undefined ? 0 : before + spanMs
}
