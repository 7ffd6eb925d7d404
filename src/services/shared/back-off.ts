// Waits between tries. Each wait is longer than the last, has jitter so that several workers do not try at the same
// moment, and ends early on a stop.

import { setTimeout as sleep } from 'node:timers/promises'

const firstWaitMs = 50
const longestWaitMs = 5_000

/** How long to wait before try `attempt` + 1; `random01` is from 0 to 1. */
export function backOffMs(attempt: number, random01: number): number {
  const full = Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(attempt, 20))
  return full * (0.5 + random01 / 2)
}

/** Returns early, without an error, when the signal is or becomes aborted. */
export async function waitOrStop(waitMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(waitMs, undefined, { signal })
  } catch (cause) {
    if (!signal.aborted) throw cause
  }
}
