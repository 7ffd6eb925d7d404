// Everything an evaluation needs that changes rarely: kept in memory by each front, one compiled set per project.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'

export interface DefinitionStore {
  /** Cheap enough to ask five times a second. */
  revision(): Promise<StoredRevision>
  /**
   * Every project changed after `revision`, whole; deleted ones by id. `loadChanges(-1)` is everything.
   * @param held what the caller has from earlier answers of the same epoch. Flags and cohorts that have not changed since are
   *   not read again: they are the same objects in the answer, with the count of members that a cohort had then. Absent: the caller has
   *   nothing.
   */
  loadChanges(revision: number, held?: HeldDefinitions): Promise<DefinitionChanges>
  /**
   * Where the store is told of commits: calls with each new revision, whoever wrote it. Some may be missed while the store
   * is away, so the revision is asked for as well.
   */
  onChange?(listener: (revision: number) => void): void
}

/** The definitions of a project, or null. */
export type HeldDefinitions = (projectId: number) => ProjectDefinitions | null

export interface StoredRevision {
  /** The instance's revision, one higher with every write that concerns evaluation. */
  readonly revision: number
  /**
   * In which life of the store that counts. A store that comes back from an older copy gives numbers a second time; it does
   * so only in another epoch. Another epoch may be the same store all the same.
   */
  readonly epoch: string
}

export interface DefinitionChanges {
  /** What the caches stand at after applying these changes. */
  readonly revision: number
  readonly projects: readonly ProjectDefinitions[]
  readonly deletedProjectIds: readonly number[]
}
