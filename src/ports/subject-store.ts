// Stored data that one evaluation reads, on the hottest path there is.

import type { PropertyBag } from '#core/json.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'

export interface SubjectStore {
  /**
   * The person a distinct id leads to, as of the last commit before this turn of the event loop (look-ups of one turn may
   * share a snapshot); null when unknown. May answer at once or with a promise.
   * @param wanted names of the properties that will be read, all when absent; others may be left out where there are many.
   * @throws (or rejects with) PortError when the state cannot be read.
   */
  findPerson(projectId: number, distinctId: string, wanted?: WantedNames): MaybePromise<SubjectPerson | null>
  /**
   * Ids of the static cohorts that the person of a distinct id is in, deleted cohorts among them, as of the same moment;
   * empty when no person has it. What it costs depends on the cohorts of the person, never on their other members.
   */
  findStaticCohorts(projectId: number, distinctId: string): MaybePromise<ReadonlySet<number>>
  /** Properties of a stored group, as of the same moment; null when unknown. `wanted` as for persons. */
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

/** Asked only when there is much to read. */
export type WantedNames = () => ReadonlySet<string>
