// Definitions from the state file. Asking for the revision costs a look at SQLite's own change counter; only when another
// connection has committed since is the row read.

import { loadDefinitionChanges } from '#adapters/sql/definition-queries.ts'
import { rethrowing } from '#adapters/sql/sql-management-store.ts'
import type { DefinitionStore } from '#ports/definition-store.ts'
import { kyselyOn, openStateForReading, statePortError } from './open-sqlite.ts'

/** On a state that has been migrated. @throws PortError when it cannot be opened. */
export function openSqliteDefinitionStore(options: {
  dataFolder: string
}): DefinitionStore & { close(): Promise<void> } {
  const database = openStateForReading(options.dataFolder)
  const db = kyselyOn(database, 'deferred')
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
        return revision
      },
      loadChanges: (after: number) => loadDefinitionChanges(db, after),
      close: () => db.destroy(),
    },
    statePortError,
  )
}
