// What an evaluation reads about persons and groups, on the hottest path.

import type { PropertyBag } from '#core/json.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'

export interface SubjectStore {
  /**
   * The person with the distinct id, as of the last commit before this turn of the event loop (look-ups in one turn may
   * share a snapshot); null if unknown. May answer at once or with a promise.
   * @param wanted names of the properties that will be read, all when absent. If there are many properties, others may
   *   be left out.
   * @throws (or rejects with) PortError if the state cannot be read.
   */
  findPerson(projectId: number, distinctId: string, wanted?: WantedNames): MaybePromise<SubjectPerson | null>
  /**
   * Ids of the static cohorts that the person of a distinct id is in, deleted cohorts included, as of the same time;
   * empty if no person has the id. The cost depends on how many cohorts the person is in, never on their other members.
   */
  findStaticCohorts(projectId: number, distinctId: string): MaybePromise<ReadonlySet<number>>
  /** Properties of a stored group, as of the same time; null if unknown. `wanted` as for persons. */
  findGroup(
    projectId: number,
    groupTypeIndex: number,
    groupKey: string,
    wanted?: WantedNames,
  ): MaybePromise<{ properties: PropertyBag } | null>
}

export interface SubjectPerson {
  readonly uuid: string
  readonly properties: PropertyBag
  readonly createdAtMs: number
}

/** Called only if there are many properties. */
export type WantedNames = () => ReadonlySet<string>
