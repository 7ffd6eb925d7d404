// The common return types of methods that write to the state or list its contents.

/** What is stored after a write, and the revision that a front must serve before it answers the client. */
export interface Written<T> {
  readonly value: T
  readonly revision: number
}

/**
 * `count` is the size of the whole list. A page is limited in bytes as well as in rows, so large rows make it shorter than
 * its limit; the next page begins where it ends. Answers are filled from as many pages as they need (`kit/list-answers.ts`).
 */
export interface Page<T> {
  readonly count: number
  readonly results: readonly T[]
}
