// Everything an evaluation needs that changes rarely: kept in memory by each front, one compiled set per project.

import type { ProjectDefinitions } from '#core/flags/project-definitions.ts'

export interface DefinitionStore {
  /** The instance's revision: +1 with every write that concerns evaluation. Cheap enough to ask five times a second. */
  revision(): Promise<number>
  /** Every project changed after `revision`, whole; deleted ones by id. `loadChanges(-1)` is everything. */
  loadChanges(revision: number): Promise<DefinitionChanges>
  /**
   * Where the store is told of commits: calls with each new revision, whoever wrote it. Some may be missed while the store
   * is away, so the revision is asked for as well.
   */
  onChange?(listener: (revision: number) => void): void
}

export interface DefinitionChanges {
  /** What the caches stand at after applying these changes. */
  readonly revision: number
  readonly projects: readonly ProjectDefinitions[]
  readonly deletedProjectIds: readonly number[]
}
