// Definitions from the state file. To find the revision it checks SQLite's own change counter, and reads the row only
// when another connection has committed since. A state thread reads the definitions themselves.

import { translateErrors } from '#adapters/sql/tables/wrap-methods.ts'
import type { DefinitionStore } from '#ports/state/definition-store.ts'
import { openStateForReading, toStatePortError } from './open-sqlite.ts'

export interface SqliteDefinitionStoreOptions {
  readonly dataFolder: string
  /** `loadChanges` of a state thread, or of `openDefinitionLoader`. */
  readonly loadChanges: DefinitionStore['loadChanges']
}

/** The state has to be migrated. @throws PortError when it cannot be opened. */
export function openSqliteDefinitionStore(
  options: SqliteDefinitionStoreOptions,
): DefinitionStore & { close(): Promise<void> } {
  const database = openStateForReading(options.dataFolder)
  const dataVersion = database.prepare<[], number>('PRAGMA data_version').pluck()
  const revisionValue = database.prepare<[], number>('SELECT value FROM revision WHERE id = 1').pluck()
  let seenDataVersion: number | undefined
  let revision = 0
  return translateErrors(
    {
      async readRevision() {
        // Reads SQLite's change counter before the revision: a commit in between is then seen twice, instead of never.
        const current = dataVersion.get()
        if (current !== seenDataVersion) {
          revision = revisionValue.get()!
          seenDataVersion = current
        }
        // The epoch never changes, since an open state file is never replaced by an older copy.
        return { revision, epoch: '' }
      },
      loadChanges: options.loadChanges,
      close: async () => {
        database.close()
      },
    },
    toStatePortError,
  )
}
