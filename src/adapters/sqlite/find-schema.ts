// Finds whether a folder holds state, and its version, without creating or changing anything.

import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { deferredCursorOf } from '#core/events/log-stream.ts'
import { stateFileOf, translating, writerWaitMs } from './open-sqlite.ts'

/**
 * @returns how many migrations the state has had; null when there is no state.
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

/**
 * The offset of each lane below which every record is processed, from the state in a folder that no other process uses.
 * @throws PortError
 */
export function findSqlitePositions(dataFolder: string): ReadonlyMap<string, number> {
  return translating(() => {
    const database = new Database(stateFileOf(dataFolder), { fileMustExist: true })
    try {
      const rows = database.prepare<[], { lane: string; offset: number }>('SELECT lane, "offset" FROM log_position')
      const positions = new Map(rows.all().map(({ lane, offset }) => [lane, Number(offset)]))
      const deferring = new Set(deferringStreams(database))
      for (const lane of [...positions.keys()]) {
        const behind = positions.get(deferredCursorOf(lane))
        if (behind === undefined) continue
        if (deferring.has(lane)) positions.set(lane, behind)
        positions.delete(deferredCursorOf(lane))
      }
      return positions
    } finally {
      database.close()
    }
  })
}

/** The damage that SQLite finds in a folder's state; null when there is none. @throws PortError */
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

/** How many rows each table has, by name. @throws PortError */
export function countSqliteRows(dataFolder: string): Readonly<Record<string, number>> {
  return translating(() => {
    const database = new Database(stateFileOf(dataFolder), { fileMustExist: true })
    try {
      const tables = database
        .prepare<[], string>(
          "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        )
        .pluck()
        .all()
      const countOf = (table: string) => database.prepare<[], number>(`SELECT count(*) FROM "${table}"`).pluck().get()!
      return Object.fromEntries(tables.map(table => [table, countOf(table)]))
    } finally {
      database.close()
    }
  })
}

/** Empty for a state that is older than the table. */
function deferringStreams(database: Database.Database): readonly string[] {
  const isThere = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE name = 'deferred_project'").get()
  if (isThere === undefined) return []
  return database.prepare<[], string>('SELECT DISTINCT stream FROM deferred_project').pluck().all()
}
