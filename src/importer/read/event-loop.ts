// Lets signals and timers run during long loops, which block them as long as they await nothing outside this process.

import { setImmediate } from 'node:timers/promises'

const everyMs = 50
let lastMs = 0

/** Whether a long loop should call `yieldToEventLoop` in its current step. */
export function isYieldDue(): boolean {
  return performance.now() - lastMs > everyMs
}

/** Runs signals, timers and other waiting callbacks. */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate()
  lastMs = performance.now()
}
