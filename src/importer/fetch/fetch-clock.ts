// The clock of a fetch. Waits end by wall-clock time, so that a machine that was suspended does not wait too long.

export interface FetchClock {
  nowMs(): number
  /** @throws the signal's reason when it is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** 0 ≤ x < 1. */
  random(): number
}

/**
 * A clock that never runs backwards: when the machine's clock is set back, it continues from the latest time it returned,
 * since every wait would otherwise last longer by the jump. It follows the machine's clock again once that has caught up.
 */
export function createForwardClock(nowMs: () => number): () => number {
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

/** Timers do not run while a machine is suspended, so long waits check the clock this often. */
const stepMs = 5_000

export async function sleepUntil(clock: FetchClock, untilMs: () => number, signal: AbortSignal): Promise<void> {
  for (let remainingMs = untilMs() - clock.nowMs(); remainingMs > 0; remainingMs = untilMs() - clock.nowMs())
    await clock.sleep(Math.min(remainingMs, stepMs), signal)
}
