// How the importer waits: its clock, how long before a retry, and how a wait is shown. Source: docs/wire/import.md §2.5,
// "Back-off"; §2.8.

import { setTimeout as sleep } from 'node:timers/promises'
import { type BackOff, computeBackOffMs } from '#core/back-off.ts'

export interface FetchClock {
  nowMs(): number
  /** @throws the signal's reason when it is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** 0 ≤ x < 1. */
  random(): number
}

/**
 * A clock that never runs backwards: when the machine's clock is set back, it continues from the latest time that it
 * returned, since otherwise every wait would last longer by the jump. It follows the machine's clock again once the
 * machine's clock has caught up.
 */
export function createMonotonicClock(nowMs: () => number): () => number {
  let aheadMs = 0
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    const readMs = nowMs()
    if (readMs >= lastMs) aheadMs = 0
    else if (readMs + aheadMs < lastMs) aheadMs = lastMs - readMs
    lastMs = readMs + aheadMs
    return lastMs
  }
}

export const wallClock: FetchClock = {
  nowMs: createMonotonicClock(Date.now),
  sleep: async (ms, signal) => void (await sleep(ms, undefined, { signal })),
  random: Math.random,
}

/** Timers do not run while a machine is suspended, so long waits check the clock this often. */
const stepMs = 5_000

export async function sleepUntil(clock: FetchClock, untilMs: () => number, signal: AbortSignal): Promise<void> {
  for (let remainingMs = untilMs() - clock.nowMs(); remainingMs > 0; remainingMs = untilMs() - clock.nowMs())
    await clock.sleep(Math.min(remainingMs, stepMs), signal)
}

/** Full jitter, so that the workers of many jobs do not all retry at the same time. */
const waits: BackOff = { firstMs: 1_000, longestMs: 60_000, jitter: 1 }
/** Longer than any known limit (an hour); bounded so that a wrong header does not stop a job for days. */
const retryAfterMsMax = 24 * 3_600_000

/**
 * @param tries consecutive failures, from 1.
 * @param random 0 ≤ x < 1
 * @param retryAfterMs the wait that the source asks for. The result is never shorter.
 */
export function computeRetryWaitMs(tries: number, random: number, retryAfterMs: number | null): number {
  const waitMs = Math.ceil(computeBackOffMs(waits, tries - 1, random))
  return retryAfterMs === null ? waitMs : Math.max(waitMs, Math.min(retryAfterMs, retryAfterMsMax))
}

/** @param header seconds or an HTTP date. @returns milliseconds from now; null when the header is neither. */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Math.round(Number(header) * 1_000)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs)
}

export interface FetchWaiting {
  /** Such as `source limit`. */
  readonly reason: string
  readonly untilMs: number
}

/** The reason of a wait for the rate limit of a source. */
export const sourceLimit = 'source limit'

/** Such as `source limit, 14 min`. */
export function describeWait({ reason, untilMs }: FetchWaiting, nowMs: number): string {
  return `${reason}, ${untilMs <= nowMs ? 'trying again' : formatWaitSpan(untilMs - nowMs)}`
}

/** Rounded up: `45 s`, `14 min`, `18.3 h`, `3.1 days`. */
export function formatWaitSpan(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.ceil(ms / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.ceil(ms / 360_000) / 10
  return hours < 48 ? `${hours} h` : `${Math.ceil((hours / 24) * 10) / 10} days`
}
