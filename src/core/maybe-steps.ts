/**
 * A value, or the steps to it where making it at once would hold the event loop: each is short, and whoever takes them may
 * do something else in between. A value of this kind is no iterator itself.
 */
export type MaybeSteps<T> = T | Steps<T>
export type Steps<T> = IteratorObject<unknown, T>

export function isSteps<T>(value: MaybeSteps<T>): value is Steps<T> {
  return value instanceof Iterator
}

/** All steps at once, for those who may take their time. */
export function atOnce<T>(value: MaybeSteps<T>): T {
  if (!isSteps(value)) return value
  for (;;) {
    const step = value.next()
    if (step.done === true) return step.value
  }
}
