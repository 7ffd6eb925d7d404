// A loop that waits for nothing outside of this process shuts out signals and timers, however many promises it awaits.

import { setImmediate } from 'node:timers/promises'

const everyMs = 50
let lastMs = 0

/** Asked in each step of such a loop: whether it has run long enough for `yieldToEventLoop`. */
export function isYieldDue(): boolean {
  return performance.now() - lastMs > everyMs
}

/** Signals, timers and whatever else waits have their turn. */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate()
  lastMs = performance.now()
}
