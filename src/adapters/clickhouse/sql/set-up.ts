// Creates the views, and on an operator's server the users that the embedded engine gets from its configuration. Runs
// once per process, and again after a reconnect: the store may have been replaced.

import { createHash } from 'node:crypto'
import { ClickHouseError } from '@clickhouse/client'
import type { SqlFunctions } from '#core/sql/check-sql.ts'
import {
  analystOf,
  analystSettings,
  describedBy,
  rowPolicies,
  type SqlScope,
  viewedTables,
  viewsDatabase,
  viewsUser,
} from '../connection/analyst.ts'
import type { ClickHouseClient, ClickHouseClients, ClickHouseEndpoint } from '../connection/clickhouse-clients.ts'
import { createSqlViews } from './views.ts'

export interface SqlSetUp {
  /** Prepares the views and users of a scope for a query; `lacking` says what the operator must do first, or is null. */
  ready(scope: SqlScope): Promise<{ readonly lacking: string | null }>
  functions(): Promise<SqlFunctions>
  /** Makes the next query of the scope check again and create what is missing. */
  forget(scope: SqlScope): void
}

const accessDenied = '497'
const noWritableUsers = '514'

export function createSqlSetUp(clients: ClickHouseClients, queryTimeoutSeconds: number): SqlSetUp {
  const setUps = new Map<SqlScope, Promise<{ lacking: string | null }>>()
  let functions: Promise<SqlFunctions> | null = null
  const forgetOnFailure = <T>(promise: Promise<T>, forget: () => void): Promise<T> => {
    promise.catch(forget)
    return promise
  }
  return {
    ready: async scope => {
      const setUp =
        setUps.get(scope) ??
        forgetOnFailure(
          clients.write((client, database, { secret, analyst }) =>
            // The embedded engine, recognised by its secret, gets its users from its configuration.
            createViewsAndUsers(client, database, scope, secret === null ? analyst : null, queryTimeoutSeconds),
          ),
          () => setUps.delete(scope),
        )
      setUps.set(scope, setUp)
      const result = await setUp
      if (result.lacking !== null) setUps.delete(scope) // until the operator has granted it
      return result
    },
    functions: () => {
      functions ??= forgetOnFailure(clients.write(readFunctions), () => {
        functions = null
      })
      return functions
    },
    forget: scope => {
      setUps.delete(scope)
    },
  }
}

async function createViewsAndUsers(
  client: ClickHouseClient,
  database: string,
  scope: SqlScope,
  analyst: ClickHouseEndpoint['analyst'] | null,
  queryTimeoutSeconds: number,
): Promise<{ lacking: string | null }> {
  const views = viewsDatabase(database, scope)
  try {
    if (analyst !== null) {
      for (const query of userStatements(database, scope, analyst, queryTimeoutSeconds)) await client.command({ query })
      if (scope === 'visible') await grantDescriptions(client, analyst.username)
    }
    const result = await client.query({
      query: 'SELECT name, comment FROM system.tables WHERE database = {views:String}',
      query_params: { views },
      format: 'JSONCompactEachRow',
    })
    const found = new Map(await result.json<[string, string]>())
    if (found.size === 0) await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${views}` })
    for (const { name, statement, comment } of createSqlViews(database, scope))
      if (found.get(name) !== comment) await client.command({ query: statement })
    return { lacking: null }
  } catch (error) {
    if (!(error instanceof ClickHouseError)) throw error
    if (error.code !== accessDenied && error.code !== noWritableUsers) throw error
    return { lacking: formatNeededGrants(database, views) }
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
function formatNeededGrants(database: string, views: string): string {
  return (
    'SQL queries are not set up on this ClickHouse. Ask its administrator to run, for the user in CLICKHOUSE_URL: ' +
    `GRANT CREATE USER, ALTER USER, CREATE ROW POLICY, ALTER ROW POLICY, CREATE DATABASE, SET DEFINER ON *.*; ` +
    `GRANT ALL ON ${views}.* WITH GRANT OPTION; GRANT SELECT ON ${database}.* WITH GRANT OPTION`
  )
}

/** All can be repeated, even concurrently. Names include the database, since users belong to the whole server. */
export function userStatements(
  database: string,
  scope: SqlScope,
  given: ClickHouseEndpoint['analyst'],
  queryTimeoutSeconds: number,
): string[] {
  const analyst = analystOf(given, scope)
  const views = viewsDatabase(database, scope)
  const definer = viewsUser(scope)
  const policy = scope === 'job' ? 'pennon_project_job' : 'pennon_project'
  const settings = Object.entries(analystSettings(queryTimeoutSeconds, scope))
    .map(([name, value]) => `${name} = ${typeof value === 'string' ? `'${value}'` : value}`)
    .join(', ')
  const hash = createHash('sha256').update(analyst.password).digest('hex')
  const ownHash = createHash('sha256').update(`${analyst.password} views`).digest('hex')
  return [
    `CREATE USER IF NOT EXISTS ${definer} IDENTIFIED WITH sha256_hash BY '${ownHash}'`,
    `ALTER USER ${definer} IDENTIFIED WITH sha256_hash BY '${ownHash}' SETTINGS ${settings}`,
    `CREATE USER IF NOT EXISTS ${analyst.username} IDENTIFIED WITH sha256_hash BY '${hash}'`,
    `ALTER USER ${analyst.username} IDENTIFIED WITH sha256_hash BY '${hash}' SETTINGS ${settings}`,
    ...Object.entries(rowPolicies(scope)).map(
      ([table, condition]) =>
        `CREATE ROW POLICY OR REPLACE ${policy} ON ${database}.${table} USING ${condition} TO ${definer}`,
    ),
    ...viewedTables(scope).map(table => `GRANT SELECT ON ${database}.${table} TO ${definer}`),
    `CREATE DATABASE IF NOT EXISTS ${views}`,
    `GRANT SELECT ON ${views}.* TO ${analyst.username}`,
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
