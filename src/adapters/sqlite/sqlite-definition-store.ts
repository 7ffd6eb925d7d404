// Definitions from the state file. Asking for the revision costs a look at SQLite's own change counter; only when another
// connection has committed since is the row read. The definitions themselves are read by a state thread.

import { rethrowing } from '#adapters/sql/rethrowing.ts'
import type { DefinitionStore } from '#ports/definition-store.ts'
import { openStateForReading, statePortError } from './open-sqlite.ts'

export interface SqliteDefinitionStoreOptions {
  readonly dataFolder: string
  /** `loadChanges` of a state thread, or of `openDefinitionLoader`. */
  readonly loadChanges: DefinitionStore['loadChanges']
}

/** On a state that has been migrated. @throws PortError when it cannot be opened. */
export function openSqliteDefinitionStore(
  options: SqliteDefinitionStoreOptions,
): DefinitionStore & { close(): Promise<void> } {
  const database = openStateForReading(options.dataFolder)
  const dataVersion = database.prepare<[], number>('PRAGMA data_version').pluck()
  const revisionValue = database.prepare<[], number>('SELECT value FROM revision WHERE id = 1').pluck()
  let seenDataVersion: number | undefined
  let revision = 0
  return rethrowing(
    {
      async revision() {
        // Read before the counter: a commit in between is seen again next time instead of never.
        const current = dataVersion.get()
        if (current !== seenDataVersion) {
          revision = revisionValue.get()!
          seenDataVersion = current
        }
        // A file that is open is not exchanged for an older one.
        return { revision, epoch: '' }
      },
      loadChanges: options.loadChanges,
      close: async () => {
        database.close()
      },
    },
    statePortError,
  )
}
