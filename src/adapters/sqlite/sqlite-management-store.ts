// The management store on the state file. The state-writer thread serves it, and tools use it directly.

import { createSqlManagementStore } from '#adapters/sql/sql-management-store.ts'
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
