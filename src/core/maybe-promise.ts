/** A value or a promise of it: lets an embedded store answer synchronously. */
export type MaybePromise<T> = T | Promise<T>

/** Calls `next` with the value: at once if it is known already, otherwise when the promise resolves. */
export function mapMaybePromise<T, Next>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<Next>,
): MaybePromise<Next> {
  return value instanceof Promise ? value.then(next) : next(value)
}
