// Creates or upgrades the event store's tables; safe to run repeatedly, and in several processes at once.

import { err, ok, type Result } from '#core/result.ts'
import { inDocs } from '#distribution.ts'
import { isTooOld, PortError, UnfitSchemaError } from '#ports/port-error.ts'
import {
  type ClickHouseClient,
  type ClickHouseClients,
  type ClickHouseEndpoint,
  createClickHouseClients,
  readRows,
} from './connection/clickhouse-clients.ts'
import { isUnknownDatabase } from './connection/clickhouse-errors.ts'
import {
  baselineTableNames,
  buildRejectTtl,
  type EventStoreMigration,
  eventStoreMigrations,
  type SchemaOptions,
} from './schema.ts'

/**
 * The free space that is required before a table is altered. If the engine runs out of space while it alters a table, the
 * table's definition is left empty and the engine cannot start.
 */
const freeBytesMin = 64 * 1024 * 1024
const versionTable = 'schema_version'

export interface MigrateOptions extends SchemaOptions {
  /** Returns the free bytes on the disk of the tables; absent if they are unknown. */
  readonly freeBytes?: (() => number) | undefined
  /** The migrations to apply; only tests set it. */
  readonly migrations?: readonly EventStoreMigration[]
}

/** The `create_table_query` of each table, by name, as the server writes it. */
type Definitions = ReadonlyMap<string, string>

/**
 * @returns what changed in tables that existed before: names of migrations, and tables whose retention was changed. @throws
 * PortError `conflict`, caused by an UnfitSchemaError, when another version created the tables; nothing is changed then.
 * PortError `full` when a table must be altered and the disk has less than 64 MiB free.
 */
export function migrateEventStore(
  clients: Pick<ClickHouseClients, 'write'>,
  options: MigrateOptions,
): Promise<string[]> {
  const { migrations = eventStoreMigrations, freeBytes } = options
  return clients.write(async (client, database) => {
    const found = await findDefinitions(client, database)
    // Creates the database only if it is missing: on a cluster, the user may not be allowed to create one.
    if (found === null) await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${database}` })
    const definitions: Definitions = found ?? new Map()
    const foundVersion = await findVersion(client, database, definitions, migrations)
    if (!foundVersion.ok) throw new PortError('event-store', 'conflict', new UnfitSchemaError(foundVersion.error))
    const version = foundVersion.value
    const changes: string[] = []
    // Creates the table of migrations first: tables without it can then only come from a version that did not have it yet.
    if (!definitions.has(versionTable))
      await client.command({
        query: `CREATE TABLE IF NOT EXISTS ${database}.${versionTable}
          (version UInt32, name String, applied_at DateTime('UTC') DEFAULT now()) ENGINE = ReplacingMergeTree ORDER BY version`,
      })
    for (const [index, { name, statements }] of migrations.entries()) {
      if (index < version) continue
      if (index > 0) requireSpace(freeBytes?.())
      for (const query of statements(database, options)) await client.command({ query })
      await client.command({
        query: `INSERT INTO ${database}.${versionTable} (version, name) VALUES ({version:UInt32}, {name:String})`,
        query_params: { version: index + 1, name },
      })
      if (version > 0) changes.push(name)
    }
    for (const table of options.isEmbedded ? [] : ['rejected_events', 'replayed_rejects']) {
      const ttl = buildRejectTtl(options)
      if (hasTtl(definitions.get(table), ttl)) continue
      requireSpace(freeBytes?.())
      await client.command({ query: `ALTER TABLE ${database}.${table} MODIFY TTL ${ttl} DELETE` })
      changes.push(table)
    }
    return changes
  })
}

/**
 * Changes nothing; for a start and for `doctor`, which wait three seconds for an answer. @returns one line for the operator
 * when another version created the tables, which `migrateEventStore` would refuse; otherwise null, also when the server
 * does not answer, since the worker retries until it does.
 */
export async function findTablesProblem(
  endpoint: ClickHouseEndpoint,
  queryTimeoutSeconds: number,
): Promise<string | null> {
  const clients = createClickHouseClients({ endpoint: () => endpoint, queryTimeoutSeconds })
  const limit = AbortSignal.timeout(3_000)
  try {
    return await clients.read(async client => {
      const found = await findDefinitions(client, endpoint.database)
      if (found === null) return null
      const version = await findVersion(client, endpoint.database, found, eventStoreMigrations)
      return version.ok ? null : version.error
    }, limit)
  } catch (cause) {
    if (limit.aborted || cause instanceof PortError) return null
    throw cause
  } finally {
    await clients.close()
  }
}

/** @returns null when the database does not exist. */
async function findDefinitions(client: ClickHouseClient, database: string): Promise<Definitions | null> {
  try {
    // Unlike a query of `system.tables`, this fails when the database is missing.
    await client.command({ query: `SHOW TABLES FROM ${database}` })
  } catch (error) {
    if (isUnknownDatabase(error)) return null
    throw error
  }
  const query = 'SELECT name, create_table_query FROM system.tables WHERE database = {database:String}'
  return new Map(await readRows<[string, string]>(client, undefined, { query, query_params: { database } }))
}

/**
 * @returns the last migration that ran; 0 also when a table is missing, so that all migrations run again and create it; or
 * one line for the operator when another version created the tables.
 */
async function findVersion(
  client: ClickHouseClient,
  database: string,
  definitions: Definitions,
  migrations: readonly EventStoreMigration[],
): Promise<Result<number, string>> {
  if (!definitions.has(versionTable)) {
    if (!definitions.has('events_pending')) return ok(0)
    return err(
      `The event store ${isTooOld}. Export what you want to keep with that version, then start this version with another database in CLICKHOUSE_URL, or without it and with an empty PENNON_DATA${inDocs('operating/upgrades.md')}.`,
    )
  }
  const query = `SELECT max(version) FROM ${database}.${versionTable}`
  const [[version]] = (await readRows<[number]>(client, undefined, { query })) as [[number]]
  if (version > migrations.length)
    return err(
      `The event store was written by a newer Pennon (schema ${version}; this version supports up to ${migrations.length}). Start that version, or restore a backup from before the upgrade.`,
    )
  return ok(baselineTableNames.every(table => definitions.has(table)) ? version : 0)
}

/** Whether a table has this TTL; also true for a table that was created just now, which has no definition here. */
function hasTtl(definition: string | undefined, ttl: string): boolean {
  return definition?.slice(definition.indexOf(' ENGINE = ')).includes(` TTL ${ttl} `) ?? true
}

function requireSpace(freeBytes = freeBytesMin): void {
  if (freeBytes >= freeBytesMin) return
  const message = `event tables must be migrated, which needs ${freeBytesMin} free bytes, and the disk has ${freeBytes}: free disk space`
  throw new PortError('event-store', 'full', new Error(message))
}
