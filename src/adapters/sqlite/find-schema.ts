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

/** Where the worker stands in each lane, by the state in a folder that nobody else uses. @throws PortError */
export function findSqlitePositions(dataFolder: string): ReadonlyMap<string, number> {
  return translating(() => {
    const database = new Database(stateFileOf(dataFolder), { fileMustExist: true })
    try {
      const rows = database.prepare<[], { lane: string; offset: number }>('SELECT lane, "offset" FROM log_position')
      return new Map(rows.all().map(({ lane, offset }) => [lane, Number(offset)]))
    } finally {
      database.close()
    }
  })
}

/** What SQLite finds wrong with the state in a folder; null when nothing is. @throws PortError */
export function findSqliteDamage(dataFolder: string): string | null {
  return translating(() => {
    const database = new Database(stateFileOf(dataFolder), { fileMustExist: true })
    try {
      const found = String(database.pragma('quick_check(1)', { simple: true }))
      return found === 'ok' ? null : found
    } finally {
      database.close()
    }
  })
}
