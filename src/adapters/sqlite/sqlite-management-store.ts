// The management store on the state file. The state-writer thread serves it, and tools use it directly.

import {
  listChangedProjectIds,
  loadDefinitionChanges,
  readDefinitionChanges,
} from '#adapters/sql/definitions/definition-queries.ts'
import type { DefinitionDelta, DefinitionVersions } from '#adapters/sql/definitions/unchanged-definitions.ts'
import { createSqlManagementStore } from '#adapters/sql/sql-management-store.ts'
import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import type { DefinitionStore, GetHeldDefinitions } from '#ports/state/definition-store.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { createSqliteKysely } from './kysely-on-sqlite.ts'
import { openStateForReading, openStateForWriting, toStatePortError, writerWaitMs } from './open-sqlite.ts'

/** The state has to be migrated. @throws PortError when it cannot be opened. */
export function openSqliteManagementStore(options: {
  dataFolder: string
  access: 'write' | 'read'
  busyTimeoutMs?: number
}): ManagementStore {
  const db =
    options.access === 'write'
      ? createSqliteKysely(
          openStateForWriting(options.dataFolder, options.busyTimeoutMs ?? writerWaitMs, { mayCreate: false }),
          'immediate',
        )
      : createSqliteKysely(openStateForReading(options.dataFolder), 'deferred')
  return createSqlManagementStore(db, toStatePortError)
}

/**
 * For a caller in another thread: the caller asks which projects changed, and passes the versions that it holds of those
 * projects.
 */
export interface DefinitionReader {
  /** The changed projects that exist, by id. */
  listChangedProjects(revision: number): Promise<readonly number[]>
  /** @param held by project id; a project that is missing from it is read completely. */
  readChanges(
    revision: number,
    held: readonly (readonly [projectId: number, DefinitionVersions])[],
  ): Promise<DefinitionDelta>
}

export interface DefinitionLoader extends Pick<DefinitionStore, 'loadChanges'>, DefinitionReader {
  close(): Promise<void>
}

/**
 * Loads definitions in a state thread, on its own connection, so that a load neither waits for a write nor takes the
 * write lock. The state has to be migrated. @throws PortError when it cannot be opened.
 */
export function openDefinitionLoader(options: { dataFolder: string }): DefinitionLoader {
  const db = createSqliteKysely(openStateForReading(options.dataFolder), 'deferred')
  return translateErrors(
    {
      loadChanges: (revision: number, held?: GetHeldDefinitions) => loadDefinitionChanges(db, revision, held),
      listChangedProjects: (revision: number) => listChangedProjectIds(db, revision),
      readChanges: (revision, held) => {
        const versions = new Map(held)
        return readDefinitionChanges(db, revision, projectId => versions.get(projectId) ?? null)
      },
      close: () => db.destroy(),
    } satisfies DefinitionLoader,
    toStatePortError,
  )
}
