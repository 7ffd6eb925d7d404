// The time that a fetch goes by. A wait ends by the clock on the wall, so that a machine that slept does not wait on.

export interface FetchClock {
  nowMs(): number
  /** @throws the signal's reason when it is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** 0 ≤ x < 1. */
  random(): number
}

/**
 * A clock that goes on from where it was when the machine's is set back: by that one, every wait would last until its time
 * has come a second time. It follows the machine's again as soon as that has caught up.
 */
export function forwardClock(nowMs: () => number): () => number {
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

/** Timers stand still while a machine sleeps. */
const stepMs = 5_000

export async function sleepUntil(clock: FetchClock, untilMs: () => number, signal: AbortSignal): Promise<void> {
  for (let left = untilMs() - clock.nowMs(); left > 0; left = untilMs() - clock.nowMs())
    await clock.sleep(Math.min(left, stepMs), signal)
}
