// What a state thread reads definitions with: a connection of its own, so that a load neither waits for a write nor takes
// the lock of one.

import { loadDefinitionChanges } from '#adapters/sql/definition-queries.ts'
import { rethrowing } from '#adapters/sql/rethrowing.ts'
import type { DefinitionStore } from '#ports/definition-store.ts'
import { kyselyOn } from './kysely-on-sqlite.ts'
import { openStateForReading, statePortError } from './open-sqlite.ts'

export interface DefinitionLoader extends Pick<DefinitionStore, 'loadChanges'> {
  close(): Promise<void>
}

/** On a state that has been migrated. @throws PortError when it cannot be opened. */
export function openDefinitionLoader(options: { dataFolder: string }): DefinitionLoader {
  const db = kyselyOn(openStateForReading(options.dataFolder), 'deferred')
  return rethrowing(
    { loadChanges: (revision: number) => loadDefinitionChanges(db, revision), close: () => db.destroy() },
    statePortError,
  )
}
