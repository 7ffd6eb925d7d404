// Creates or upgrades the tables; safe to run from several processes at once and again.

import { PortError } from '#ports/port-error.ts'
import type { ClickHouseClients } from './connection/clickhouse-clients.ts'
import { isUnknownDatabase } from './connection/clickhouse-errors.ts'
import { type SchemaOptions, schemaStatements } from './schema.ts'

/** An engine that finds no room while it alters a table leaves an empty definition behind, and does not start with it. */
const freeBytesMin = 64 * 1024 * 1024

export interface MigrateOptions extends SchemaOptions {
  /** How much room the disk of the tables has; absent where we cannot know. */
  readonly freeBytes?: (() => number) | undefined
}

/**
 * @returns the tables that were there and were altered, each once.
 * @throws PortError `full` when a table has to be altered and the disk has less than 64 MiB left.
 */
export function migrate(clients: ClickHouseClients, options: MigrateOptions): Promise<string[]> {
  return clients.write(async (client, database) => {
    const tables = await client
      .query({ query: `SHOW TABLES FROM ${database}`, format: 'JSONCompactEachRow' })
      .then(result => result.json<[string]>())
      .catch(error => {
        if (isUnknownDatabase(error)) return null
        throw error
      })
    // Only when it is missing: the user of a cluster may not be allowed to.
    if (tables === null) await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${database}` })
    const definitions = new Map(
      await client
        .query({
          query: 'SELECT name, create_table_query FROM system.tables WHERE database = {database:String}',
          query_params: { database },
          format: 'JSONCompactEachRow',
        })
        .then(result => result.json<[string, string]>()),
    )
    const altered = new Set<string>()
    for (const { table, query, isDone } of schemaStatements(database, options)) {
      const definition = definitions.get(table)
      if (isDone === undefined ? definition !== undefined : definition === undefined || isDone(definition)) continue
      if (isDone !== undefined) {
        requireRoom(options.freeBytes?.())
        altered.add(table)
      }
      await client.command({ query })
    }
    return [...altered]
  })
}

function requireRoom(freeBytes = freeBytesMin): void {
  if (freeBytes >= freeBytesMin) return
  const message = `tables of events have to be altered, and the disk has ${freeBytes} bytes left of the ${freeBytesMin} that it needs for that: make room`
  throw new PortError('event-store', 'full', new Error(message))
}
