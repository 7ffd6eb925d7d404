// Experience continuity: the id by which a person was bucketed before a login, kept per flag, so that the bucket stays.
// A front reads the rows of a request's subject and writes those that are missing; merges move them (`chunk-store.ts`).
// Source: docs/wire/evaluation.md 5.13.

import type { MaybePromise } from '#core/maybe-promise.ts'

/** Flag key and hash key. */
export type HashKeyRow = readonly [flagKey: string, hashKey: string]

export interface HashKeyOverrideReader {
  /**
   * Rows of the person a distinct id leads to, whatever became of their flags, as fresh as `SubjectStore.findPerson`; null
   * when nobody has the id. May answer at once or with a promise.
   * @throws (or rejects with) PortError when the state cannot be read.
   */
  findHashKeys(projectId: number, distinctId: string): MaybePromise<readonly HashKeyRow[] | null>
}

export interface HashKeyAssignment {
  readonly projectId: number
  readonly distinctId: string
  /** What the new rows hold. NUL and halves of surrogate pairs are stored as U+FFFD. */
  readonly anonDistinctId: string
  /** The flags that are to have a row. */
  readonly flagKeys: readonly string[]
}

export interface HashKeyOverrideWriter {
  /**
   * Gives the persons of both ids a row for each flag for which none of them has one. A row that is there stays, so that of
   * several who do this for one person at the same time the first wins, and all get the same answer. Durable when it
   * resolves; the same again changes nothing. Does not wait long for a lock.
   * @returns the rows of these persons after that; of two for one flag, that of the person who owns `distinctId`. Empty when
   *   nobody owns either id.
   * @throws PortError; whether the rows were written is unknown then.
   */
  keepHashKey(assignment: HashKeyAssignment): Promise<readonly HashKeyRow[]>
}
