// Finds whether a folder holds state, and its version, without creating or changing anything.

import { existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { formatDeferredCursorName } from '#core/events/log-stream.ts'
import { rethrowAsStatePortErrors, stateFilePath, writerWaitMs } from './open-sqlite.ts'

/**
 * @returns the number of the state's last migration, NaN when the state does not record it; null when there is no state.
 * @throws PortError when the file cannot be read or is not a database.
 */
export function findSqliteSchemaVersion(dataFolder: string): number | null {
  if (!existsSync(stateFilePath(dataFolder))) return null
  return withDatabase(dataFolder, database => {
    const tables = database.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all()
    if (!['schema_version', 'project', 'personal_api_key'].every(table => tables.includes(table))) return null
    return Number(database.prepare('SELECT max(version) FROM schema_version').pluck().get()) || Number.NaN
  })
}

/** Does not open the database read-only: such a connection leaves its files (`-wal`, `-shm`) behind. */
function withDatabase<T>(dataFolder: string, work: (database: Database.Database) => T): T {
  return rethrowAsStatePortErrors(() => {
    const database = new Database(stateFilePath(dataFolder), { fileMustExist: true, timeout: writerWaitMs })
    try {
      return work(database)
    } finally {
      database.close()
    }
  })
}

/**
 * Like `findSqliteSchemaVersion`, but never changes the folder, even if a killed process left a `-wal`: it reads `state.db`
 * alone, and so misses migrations that are only in the `-wal`. @returns null also when the file cannot be read in this way.
 */
export function findSchemaVersionWithoutWal(dataFolder: string): number | null {
  const url = pathToFileURL(stateFilePath(dataFolder))
  url.search = '?immutable=1'
  let database: DatabaseSync | undefined
  try {
    if (!statSync(url).isFile()) return null // to open a pipe would wait for its writer
    database = new DatabaseSync(url, { readOnly: true })
    return Number(database.prepare('SELECT max(version) AS version FROM schema_version').get()?.version) || Number.NaN
  } catch {
    return null // whoever opens it for use reports why
  } finally {
    database?.close()
  }
}

/**
 * The offset in each stream below which every record is processed, from the state in a folder that no other process uses.
 * @throws PortError
 */
export function findSqliteLogPositions(dataFolder: string): ReadonlyMap<string, number> {
  return withDatabase(dataFolder, database => {
    const rows = database.prepare<[], { stream: string; offset: number }>('SELECT stream, "offset" FROM log_position')
    const positions = new Map(rows.all().map(({ stream, offset }) => [stream, Number(offset)]))
    const deferring = database.prepare<[], string>('SELECT DISTINCT stream FROM deferred_project').pluck().all()
    for (const stream of [...positions.keys()]) {
      const behind = positions.get(formatDeferredCursorName(stream))
      if (behind === undefined) continue
      if (deferring.includes(stream)) positions.set(stream, behind)
      positions.delete(formatDeferredCursorName(stream))
    }
    return positions
  })
}

/** The damage that SQLite finds in a folder's state; null when there is none. @throws PortError */
export function findSqliteDamage(dataFolder: string): string | null {
  return withDatabase(dataFolder, database => {
    const found = String(database.pragma('quick_check(1)', { simple: true }))
    return found === 'ok' ? null : found
  })
}

/** How many rows each table has, by name. @throws PortError */
export function countSqliteRows(dataFolder: string): Readonly<Record<string, number>> {
  return withDatabase(dataFolder, database => {
    const named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    const tables = database.prepare<[], string>(named).pluck().all()
    const countRows = (table: string) => database.prepare<[], number>(`SELECT count(*) FROM "${table}"`).pluck().get()!
    return Object.fromEntries(tables.map(table => [table, countRows(table)]))
  })
}
