// Creates the views, and on an operator's server the users that the embedded engine gets from its configuration. Runs
// once per process, and again after a reconnect: the store may have been replaced.

import { createHash } from 'node:crypto'
import { ClickHouseError } from '@clickhouse/client'
import type { SqlFunctions } from '#core/sql/check-sql.ts'
import {
  analystSettings,
  describedBy,
  isRowOfProject,
  rowsOfProjects,
  viewedTables,
  viewsDatabase,
  viewsUser,
} from '../connection/analyst.ts'
import type { ClickHouseClient, ClickHouseClients, ClickHouseEndpoint } from '../connection/clickhouse-clients.ts'
import { createSqlViews } from './views.ts'

export interface SqlSetUp {
  /** Prepares the views and users for a query; `lacking` says what the operator must do first, or is null. */
  ready(): Promise<{ readonly lacking: string | null }>
  functions(): Promise<SqlFunctions>
  /** Makes the next query check again and create what is missing. */
  forget(): void
}

const accessDenied = '497'
const noWritableUsers = '514'

export function createSqlSetUp(clients: ClickHouseClients, queryTimeoutSeconds: number): SqlSetUp {
  let setUp: Promise<{ lacking: string | null }> | null = null
  let functions: Promise<SqlFunctions> | null = null
  const forgetOnFailure = <T>(promise: Promise<T>, forget: () => void): Promise<T> => {
    promise.catch(forget)
    return promise
  }
  return {
    ready: () => {
      setUp ??= forgetOnFailure(
        clients.write((client, database, { secret, analyst }) =>
          // The embedded engine, recognised by its secret, gets its users from its configuration.
          createViewsAndUsers(client, database, secret === null ? analyst : null, queryTimeoutSeconds),
        ),
        () => {
          setUp = null
        },
      )
      return setUp.then(result => {
        if (result.lacking !== null) setUp = null // until the operator has granted it
        return result
      })
    },
    functions: () => {
      functions ??= forgetOnFailure(clients.write(readFunctions), () => {
        functions = null
      })
      return functions
    },
    forget: () => {
      setUp = null
    },
  }
}

async function createViewsAndUsers(
  client: ClickHouseClient,
  database: string,
  analyst: ClickHouseEndpoint['analyst'] | null,
  queryTimeoutSeconds: number,
): Promise<{ lacking: string | null }> {
  const views = viewsDatabase(database)
  try {
    if (analyst !== null) {
      for (const query of userStatements(database, analyst, queryTimeoutSeconds)) await client.command({ query })
      await grantDescriptions(client, analyst.username)
    }
    const result = await client.query({
      query: 'SELECT name, comment FROM system.tables WHERE database = {views:String}',
      query_params: { views },
      format: 'JSONCompactEachRow',
    })
    const found = new Map(await result.json<[string, string]>())
    if (found.size === 0) await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${views}` })
    for (const { name, statement, comment } of createSqlViews(database))
      if (found.get(name) !== comment) await client.command({ query: statement })
    return { lacking: null }
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error
    if (error.code !== accessDenied && error.code !== noWritableUsers) throw error
    return { lacking: formatNeededGrants(database) }
  }
}

/** Optional, so operators are not asked for it: without these grants only some drivers' lists of tables are refused. */
async function grantDescriptions(client: ClickHouseClient, username: string): Promise<void> {
  for (const each of describedBy)
    try {
      await client.command({ query: `GRANT SELECT ON ${each} TO ${username}` })
    } catch (error) {
      if (!(error instanceof ClickHouseError) || error.code !== accessDenied) throw error
    }
}

/** The grants that the user of `CLICKHOUSE_URL` needs, as a message for the operator. */
function formatNeededGrants(database: string): string {
  const views = viewsDatabase(database)
  return (
    'SQL queries are not set up on this ClickHouse. Ask its administrator to run, for the user in CLICKHOUSE_URL: ' +
    `GRANT CREATE USER, ALTER USER, CREATE ROW POLICY, ALTER ROW POLICY, CREATE DATABASE, SET DEFINER ON *.*; ` +
    `GRANT ALL ON ${views}.* WITH GRANT OPTION; GRANT SELECT ON ${database}.* WITH GRANT OPTION`
  )
}

/** All can be repeated, even concurrently. Names include the database, since users belong to the whole server. */
export function userStatements(
  database: string,
  analyst: ClickHouseEndpoint['analyst'],
  queryTimeoutSeconds: number,
): string[] {
  const settings = Object.entries(analystSettings(queryTimeoutSeconds))
    .map(([name, value]) => `${name} = ${typeof value === 'string' ? `'${value}'` : value}`)
    .join(', ')
  const hash = createHash('sha256').update(analyst.password).digest('hex')
  const ownHash = createHash('sha256').update(`${analyst.password} views`).digest('hex')
  return [
    `CREATE USER IF NOT EXISTS ${viewsUser} IDENTIFIED WITH sha256_hash BY '${ownHash}'`,
    `ALTER USER ${viewsUser} IDENTIFIED WITH sha256_hash BY '${ownHash}' SETTINGS ${settings}`,
    `CREATE USER IF NOT EXISTS ${analyst.username} IDENTIFIED WITH sha256_hash BY '${hash}'`,
    `ALTER USER ${analyst.username} IDENTIFIED WITH sha256_hash BY '${hash}' SETTINGS ${settings}`,
    ...rowsOfProjects.flatMap(table => [
      `CREATE ROW POLICY OR REPLACE pennon_project ON ${database}.${table} USING ${isRowOfProject} TO ${viewsUser}`,
    ]),
    ...viewedTables.map(table => `GRANT SELECT ON ${database}.${table} TO ${viewsUser}`),
    `CREATE DATABASE IF NOT EXISTS ${viewsDatabase(database)}`,
    `GRANT SELECT ON ${viewsDatabase(database)}.* TO ${analyst.username}`,
  ]
}

async function readFunctions(client: ClickHouseClient): Promise<SqlFunctions> {
  const read = async <T>(query: string) => (await client.query({ query, format: 'JSONCompactEachRow' })).json<T>()
  // Leaves out functions that an operator has added, since they may do anything.
  const rows = await read<[string, number, number]>(
    "SELECT name, is_aggregate, case_insensitive FROM system.functions WHERE origin = 'System'",
  )
  const combinators = await read<[string]>('SELECT name FROM system.aggregate_function_combinators')
  return {
    names: new Set(rows.filter(([, isAggregate]) => isAggregate === 0).map(([name]) => name)),
    anyCase: new Set(rows.filter(([, , anyCase]) => anyCase === 1).map(([name]) => name.toLowerCase())),
    aggregates: new Set(rows.filter(([, isAggregate]) => isAggregate === 1).map(([name]) => name)),
    combinators: combinators.map(([name]) => name),
  }
}
