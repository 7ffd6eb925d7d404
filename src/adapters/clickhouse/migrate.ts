// Creates or upgrades the tables; safe to run from several processes at once and again.

import type { ClickHouseClients } from './clickhouse-clients.ts'
import { isUnknownDatabase } from './clickhouse-errors.ts'
import { type SchemaOptions, schemaStatements } from './schema.ts'

export function migrate(clients: ClickHouseClients, options: SchemaOptions): Promise<void> {
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
    for (const query of schemaStatements(database, options)) await client.command({ query })
  })
}
