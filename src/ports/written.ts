// What writes and lists of the state answer, whatever they are of.

/** What is stored after a write, and the revision to wait for before replying. */
export interface Written<T> {
  readonly value: T
  readonly revision: number
}

export interface Page<T> {
  readonly count: number
  readonly results: readonly T[]
}
