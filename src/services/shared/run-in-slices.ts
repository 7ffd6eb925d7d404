// Runs long work in steps and yields to the event loop now and then.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MaybePromise } from '#core/maybe-promise.ts'

/** How long work runs before it yields to the event loop: far below what another request would notice. */
const sliceMs = 10

/** Runs all steps, each of which must be short. Work that fits into one slice returns its result synchronously. */
export function runInSlices<T>(steps: Iterator<unknown, T>): MaybePromise<T> {
  const step = runSlice(steps)
  return step.done === true ? step.value : runLaterSlices(steps)
}

async function runLaterSlices<T>(steps: Iterator<unknown, T>): Promise<T> {
  for (;;) {
    await nextTurn()
    const step = runSlice(steps)
    if (step.done === true) return step.value
  }
}

/** @returns the last step of a slice. */
function runSlice<T>(steps: Iterator<unknown, T>): IteratorResult<unknown, T> {
  const sliceEndMs = performance.now() + sliceMs
  for (;;) {
    const step = steps.next()
    if (step.done === true || performance.now() >= sliceEndMs) return step
  }
}
