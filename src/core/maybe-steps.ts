/**
 * A value; or the steps that compute it, if computing it at once would block the event loop. Each step is short, and the
 * caller may do something else between two steps. T itself must not be an iterator.
 */
export type MaybeSteps<T> = T | Steps<T>
export type Steps<T> = IteratorObject<unknown, T>

export function isSteps<T>(value: MaybeSteps<T>): value is Steps<T> {
  return value instanceof Iterator
}

/** Takes all steps at once, for callers that may block. */
export function runAllSteps<T>(value: MaybeSteps<T>): T {
  if (!isSteps(value)) return value
  for (;;) {
    const step = value.next()
    if (step.done === true) return step.value
  }
}
