// Lets long loops run signals and timers, which a loop blocks as long as it awaits nothing outside this process.

import { setImmediate } from 'node:timers/promises'

const everyMs = 50
let lastMs = 0

/** Whether such a loop should call `yieldToEventLoop` in this step. */
export function isYieldDue(): boolean {
  return performance.now() - lastMs > everyMs
}

/** Runs signals, timers and other waiting callbacks. */
export async function yieldToEventLoop(): Promise<void> {
  await setImmediate()
  lastMs = performance.now()
}
