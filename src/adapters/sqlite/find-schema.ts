// Whether a folder holds state, and of which version, without making or changing any of it.

import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { stateFileOf, translating, writerWaitMs } from './open-sqlite.ts'

/**
 * @returns how many migrations the state has had; null when there is none.
 * @throws PortError when the file cannot be read or is no database.
 */
export function findSqliteSchema(dataFolder: string): number | null {
  if (!existsSync(stateFileOf(dataFolder))) return null
  return translating(() => {
    // Not read only: such a connection leaves its files (`-wal`, `-shm`) behind.
    const database = new Database(stateFileOf(dataFolder), { fileMustExist: true, timeout: writerWaitMs })
    try {
      const tables = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all()
      if (!['schema_version', 'project', 'personal_api_key'].every(table => tables.includes(table))) return null
      return Number(database.prepare<[], number | null>('SELECT max(version) FROM schema_version').pluck().get() ?? 0)
    } finally {
      database.close()
    }
  })
}
