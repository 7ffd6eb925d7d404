/** A value or a promise of it: lets an embedded store answer without a turn of the event loop. */
export type MaybePromise<T> = T | Promise<T>

/** Continues at once with a value, or with that of a promise. */
export function whenKnown<T, Next>(value: MaybePromise<T>, next: (value: T) => MaybePromise<Next>): MaybePromise<Next> {
  return value instanceof Promise ? value.then(next) : next(value)
}
