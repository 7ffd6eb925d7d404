/** A value or a promise of it: lets an embedded store answer without a turn of the event loop. */
export type MaybePromise<T> = T | Promise<T>
