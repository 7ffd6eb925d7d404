// The management store on the state file: what the state-writer thread serves, and what tools use directly.

import { sqlManagementStore } from '#adapters/sql/sql-management-store.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { kyselyOn } from './kysely-on-sqlite.ts'
import { openStateForReading, openStateForWriting, statePortError, writerWaitMs } from './open-sqlite.ts'

/** On a state that has been migrated. @throws PortError when it cannot be opened. */
export function openSqliteManagementStore(options: {
  dataFolder: string
  access: 'write' | 'read'
  busyTimeoutMs?: number
}): ManagementStore {
  const db =
    options.access === 'write'
      ? kyselyOn(
          openStateForWriting(options.dataFolder, options.busyTimeoutMs ?? writerWaitMs, { mayCreate: false }),
          'immediate',
        )
      : kyselyOn(openStateForReading(options.dataFolder), 'deferred')
  return sqlManagementStore(db, statePortError)
}
