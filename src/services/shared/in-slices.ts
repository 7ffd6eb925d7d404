// Work of many steps that gives the event loop its turn now and then.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Between turns, ms: far below what another request would notice. */
const sliceMs = 10

/** Runs the steps to their end; each is to be short. What fits into one slice is done before this returns. */
export async function inSlices<T>(steps: Iterator<unknown, T>): Promise<T> {
  for (let sliceEndMs = performance.now() + sliceMs; ; ) {
    const step = steps.next()
    if (step.done === true) return step.value
    if (performance.now() < sliceEndMs) continue
    await nextTurn()
    sliceEndMs = performance.now() + sliceMs
  }
}
