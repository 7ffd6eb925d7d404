import { setTimeout as sleep } from 'node:timers/promises'
import { computeBackOffMs } from '#core/back-off.ts'

/** How long to wait between tries while a store or the log is down; `attempt` starts at 0. */
export function computeStoreBackOffMs(attempt: number, random: number): number {
  return computeBackOffMs({ firstMs: 50, longestMs: 5_000 }, attempt, random)
}

/** Returns early, without an error, when the signal is or becomes aborted. */
export async function waitOrStop(waitMs: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(waitMs, undefined, { signal })
  } catch (cause) {
    if (!signal.aborted) throw cause
  }
}
