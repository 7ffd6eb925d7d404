// What an evaluation reads about persons and groups. This is the most frequent read of all.

import type { PropertyBag } from '#core/json.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'

export interface SubjectStore {
  /**
   * The person with the distinct id, as of the last commit before this turn of the event loop (look-ups in one turn may
   * share a snapshot); null if unknown. May answer at once or with a promise.
   * @param wanted names of the properties that will be read, all when absent. If there are many properties, the others may
   * be left out.
   * @throws (or rejects with) PortError if the state cannot be read.
   */
  findPerson(projectId: number, distinctId: string, wanted?: GetWantedNames): MaybePromise<SubjectPerson | null>
  /**
   * Ids of the static cohorts that the person of a distinct id is in, deleted cohorts included, as fresh as `findPerson`;
   * empty if no person has the id. The cost depends on how many cohorts the person is in, never on their other members.
   */
  findStaticCohorts(projectId: number, distinctId: string): MaybePromise<ReadonlySet<number>>
  /** Properties of a stored group, as fresh as `findPerson`; null if unknown. `wanted` is as in `findPerson`. */
  findGroup(
    projectId: number,
    groupTypeIndex: number,
    groupKey: string,
    wanted?: GetWantedNames,
  ): MaybePromise<{ properties: PropertyBag } | null>
}

export interface SubjectPerson {
  readonly uuid: string
  readonly properties: PropertyBag
  readonly createdAtMs: number
}

/** Returns the names of the wanted properties; called only if there are many properties. */
export type GetWantedNames = () => ReadonlySet<string>

// Experience continuity: stores, per flag, the id by which a person was bucketed before a login, so that the bucket
// stays. A front reads the rows of a request's subject and writes missing ones; merges move them (`chunk-store.ts`).
// Source: docs/wire/evaluation.md 5.13.

export type HashKeyRow = readonly [flagKey: string, hashKey: string]

export interface HashKeyOverrideReader {
  /**
   * Rows of the person that has the distinct id, rows of deleted flags included, as fresh as `SubjectStore.findPerson`; null
   * if no person has the id. May answer at once or with a promise.
   * @throws (or rejects with) PortError when the state cannot be read.
   */
  findHashKeys(projectId: number, distinctId: string): MaybePromise<readonly HashKeyRow[] | null>
}

export interface HashKeyAssignment {
  readonly projectId: number
  readonly distinctId: string
  /** The hash key of new rows. NUL and halves of surrogate pairs are stored as U+FFFD. */
  readonly anonDistinctId: string
  /** Keys of the flags that get a row if they have none. */
  readonly flagKeys: readonly string[]
}

export interface HashKeyOverrideWriter {
  /**
   * Gives the persons of both ids a row for each flag for which neither has one. Existing rows stay, so among
   * concurrent callers the first wins and all get the same answer. Durable when it resolves. A repeat changes nothing.
   * Waits only briefly for a lock.
   * @returns these persons' rows afterwards; of two rows for one flag, the row of the person who owns `distinctId`.
   *   Empty if no person owns either id.
   * @throws PortError, in which case it is unknown whether the rows were written.
   */
  addMissingHashKeys(assignment: HashKeyAssignment): Promise<readonly HashKeyRow[]>
}
