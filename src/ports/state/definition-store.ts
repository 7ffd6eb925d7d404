// The definitions that evaluations need; they rarely change. Each front keeps a compiled set per project in memory.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'

export interface DefinitionStore {
  /** Cheap enough to call five times a second. */
  readRevision(): Promise<StoredRevision>
  /**
   * Every project that changed after `revision`, in full, and the ids of deleted projects. `loadChanges(-1)` returns
   * everything.
   * @param held what the caller has from earlier answers of the same epoch; absent if it has nothing. Flags and cohorts
   * that have not changed since are not read again: the answer has the same objects, so a cohort keeps its earlier
   * count of members.
   */
  loadChanges(revision: number, held?: GetHeldDefinitions): Promise<DefinitionChanges>
  /**
   * Present if the store is notified of commits: calls the listener with each new revision, whichever process wrote it.
   * Calls may be missed while the store is unreachable, so callers poll `readRevision` as well.
   */
  onChange?(listener: (revision: number) => void): void
}

/** The caller's definitions of a project, or null if it has none. */
export type GetHeldDefinitions = (projectId: number) => ProjectDefinitions | null

export interface StoredRevision {
  /** The instance's revision, raised by one with every write that concerns evaluation. */
  readonly revision: number
  /**
   * Revisions are comparable only within an epoch. A store that was replaced by an older copy assigns the same numbers
   * again, and therefore has a new epoch. The epoch may also change for other reasons.
   */
  readonly epoch: string
}

export interface DefinitionChanges {
  /** The revision of a cache that has applied these changes. */
  readonly revision: number
  readonly projects: readonly ProjectDefinitions[]
  readonly deletedProjectIds: readonly number[]
}
