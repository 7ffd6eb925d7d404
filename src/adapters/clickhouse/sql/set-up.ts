// Creates the views that users' SQL reads and, on an operator's server, the users that run it; the embedded engine gets
// these users from its configuration. Runs once per process, and again after a reconnect, since the store may have been
// replaced.

import { createHash } from 'node:crypto'
import { ClickHouseError } from '@clickhouse/client'
import { flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import type { SqlFunctions } from '#core/sql/check-sql.ts'
import {
  type ClickHouseClient,
  type ClickHouseClients,
  type ClickHouseEndpoint,
  readRows,
} from '../connection/clickhouse-clients.ts'
import { isAccessDenied } from '../connection/clickhouse-errors.ts'
import {
  buildRowPolicies,
  buildSqlUserLogin,
  buildSqlUserSettings,
  describedBy,
  formatViewsDatabaseName,
  formatViewsUserName,
  listTablesReadByViews,
  type SqlScope,
} from '../connection/sql-users.ts'
import { requireFilledMirrorSql } from '../queries/current-persons.ts'
import { buildEventSourcesWithJob } from '../queries/event-sources.ts'

export interface SqlSetUp {
  /** Prepares the views and users of a scope for a query; `lacking` says what the operator must do first, or is null. */
  ready(scope: SqlScope): Promise<{ readonly lacking: string | null }>
  functions(): Promise<SqlFunctions>
  /** Makes the next query of the scope check again and create what is missing. */
  forget(scope: SqlScope): void
}

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
            // The embedded engine, which alone has a secret, gets its users from its configuration, so none are created
            // there.
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
  const views = formatViewsDatabaseName(database, scope)
  try {
    if (analyst !== null) {
      for (const query of buildUserStatements(database, scope, analyst, queryTimeoutSeconds))
        await client.command({ query })
      if (scope === 'visible') await grantSystemTables(client, analyst.username)
    }
    const query = 'SELECT name, comment FROM system.tables WHERE database = {views:String}'
    const found = new Map(await readRows<[string, string]>(client, undefined, { query, query_params: { views } }))
    if (found.size === 0) await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${views}` })
    for (const { name, statement, comment } of createSqlViews(database, scope))
      if (found.get(name) !== comment) await client.command({ query: statement })
    return { lacking: null }
  } catch (error) {
    if (!isAccessDenied(error) && !(error instanceof ClickHouseError && error.code === noWritableUsers)) throw error
    return { lacking: formatNeededGrants(database, views) }
  }
}

/**
 * Grants the right to read the lists of tables. This is optional, so a refusal is ignored: without it, only some drivers
 * cannot list tables.
 */
async function grantSystemTables(client: ClickHouseClient, username: string): Promise<void> {
  for (const each of describedBy)
    try {
      await client.command({ query: `GRANT SELECT ON ${each} TO ${username}` })
    } catch (error) {
      if (!isAccessDenied(error)) throw error
    }
}

/** A message for the operator that names the grants that the user in `CLICKHOUSE_URL` needs. */
function formatNeededGrants(database: string, views: string): string {
  return (
    'SQL queries are not set up on this ClickHouse. Ask its administrator to run, for the user in CLICKHOUSE_URL: ' +
    `GRANT CREATE USER, ALTER USER, CREATE ROW POLICY, ALTER ROW POLICY, CREATE DATABASE, SET DEFINER ON *.*; ` +
    `GRANT ALL ON ${views}.* WITH GRANT OPTION; GRANT SELECT ON ${database}.* WITH GRANT OPTION`
  )
}

/**
 * Every statement can be repeated, even concurrently. Users' names include the name of the database, since users belong to
 * the whole server.
 */
export function buildUserStatements(
  database: string,
  scope: SqlScope,
  given: ClickHouseEndpoint['analyst'],
  queryTimeoutSeconds: number,
): string[] {
  const analyst = buildSqlUserLogin(given, scope)
  const views = formatViewsDatabaseName(database, scope)
  const definer = formatViewsUserName(scope)
  const policy = scope === 'job' ? 'pennon_project_job' : 'pennon_project'
  const settings = Object.entries(buildSqlUserSettings(queryTimeoutSeconds, scope))
    .map(([name, value]) => `${name} = ${typeof value === 'string' ? `'${value}'` : value}`)
    .join(', ')
  const hash = createHash('sha256').update(analyst.password).digest('hex')
  const ownHash = createHash('sha256').update(`${analyst.password} views`).digest('hex')
  return [
    `CREATE USER IF NOT EXISTS ${definer} IDENTIFIED WITH sha256_hash BY '${ownHash}'`,
    `ALTER USER ${definer} IDENTIFIED WITH sha256_hash BY '${ownHash}' SETTINGS ${settings}`,
    `CREATE USER IF NOT EXISTS ${analyst.username} IDENTIFIED WITH sha256_hash BY '${hash}'`,
    `ALTER USER ${analyst.username} IDENTIFIED WITH sha256_hash BY '${hash}' SETTINGS ${settings}`,
    ...Object.entries(buildRowPolicies(scope)).map(
      ([table, condition]) =>
        `CREATE ROW POLICY OR REPLACE ${policy} ON ${database}.${table} USING ${condition} TO ${definer}`,
    ),
    ...listTablesReadByViews(scope).map(table => `GRANT SELECT ON ${database}.${table} TO ${definer}`),
    `CREATE DATABASE IF NOT EXISTS ${views}`,
    `GRANT SELECT ON ${views}.* TO ${analyst.username}`,
  ]
}

async function readFunctions(client: ClickHouseClient): Promise<SqlFunctions> {
  const read = <T>(query: string) => readRows<T>(client, undefined, { query })
  // Allows no functions that an operator has added, since they may do anything.
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

export interface SqlView {
  readonly name: string
  /** Creates the view, or replaces a view of another version. */
  readonly statement: string
  /** The comment that this version gives to the view; a view with another comment is replaced. */
  readonly comment: string
}

/**
 * The views that users' SQL reads: one project's rows, each identity once, with current persons. They read the tables as a
 * user that sees only rows of the request's project (`connection/sql-users.ts`), so they need not name the project.
 */
export function createSqlViews(database: string, scope: SqlScope = 'visible'): SqlView[] {
  const seen = scope === 'job' ? buildEventSourcesWithJob({ database, isVisible: '1', isOfJob: '1' }).once : null
  const eventRows = seen ?? `${database}.events FINAL`
  const overrides = `SELECT distinct_id, person_id, true AS is_overridden FROM ${database}.person_distinct_id_overrides FINAL`
  const person = 'if(o.is_overridden, o.person_id, e.person_id) AS person_id'
  const isFilled = requireFilledMirrorSql(database)
  const groupColumns = [0, 1, 2, 3, 4].map(index => `e.\`$group_${index}\` AS \`$group_${index}\``).join(', ')
  const selects = {
    events: `SELECT e.uuid AS uuid, e.event AS event, e.distinct_id AS distinct_id, e.timestamp AS timestamp,
        e.properties AS properties, ${person}, e.person_properties AS person_properties,
        e.person_created_at AS person_created_at, e.person_mode AS person_mode, ${groupColumns},
        e.\`$session_id\` AS \`$session_id\`, e.\`$window_id\` AS \`$window_id\`, e.flags AS flags,
        e.flag_called AS flag_called, e.flag_response AS flag_response, e.elements_chain AS elements_chain,
        e.lane AS lane, e.historical_migration AS historical_migration, e.import_job_id AS import_job_id,
        e.captured_at AS captured_at, e.created_at AS created_at
      FROM ${seen === null ? `${database}.events AS e FINAL` : `${seen} AS e`} LEFT ANY JOIN (${overrides}) AS o USING (distinct_id)`,
    persons: `SELECT uuid AS id, properties, created_at, is_identified FROM ${database}.persons FINAL
      WHERE ${isFilled} AND is_deleted = 0`,
    groups: `SELECT group_type_index, group_key, properties, created_at FROM ${database}.groups FINAL
      WHERE ${isFilled} AND is_deleted = 0`,
    flag_calls: `SELECT e.uuid AS uuid, e.timestamp AS timestamp, e.distinct_id AS distinct_id, ${person},
        e.flag_key AS flag_key, e.flag_response AS flag_response, e.is_thinned AS is_thinned,
        e.historical_migration AS historical_migration
      FROM (
        SELECT uuid, timestamp, distinct_id, person_id, flag_called AS flag_key, flag_response, false AS is_thinned,
          historical_migration
        FROM ${eventRows} WHERE event = '${flagCallEventName}'
        UNION ALL
        ${deduplicatedCallsSql(database, eventRows)}
      ) AS e LEFT ANY JOIN (${overrides}) AS o USING (distinct_id)`,
  }
  return Object.entries(selects).map(([name, select]) => {
    const comment = `pennon ${createHash('sha256').update(select).digest('hex').slice(0, 16)}`
    const statement = `CREATE OR REPLACE VIEW ${formatViewsDatabaseName(database, scope)}.${name}
      DEFINER = ${formatViewsUserName(scope)} SQL SECURITY DEFINER AS ${select} COMMENT '${comment}'`
    return { name, statement, comment }
  })
}

/**
 * SQL of deduplicated calls, with the same rules as for usage (`insights/flag-calls.ts`): a deduplicated call was made by
 * the person of the stored call that it repeats, and a call that was also stored counts as stored. Stored calls are read
 * only for a project that deduplicates.
 */
function deduplicatedCallsSql(database: string, eventRows: string): string {
  const stored = `FROM ${eventRows}
    WHERE event = '${flagCallEventName}' AND (SELECT count() > 0 FROM ${database}.deduplicated_flag_calls)`
  return `SELECT t.uuid AS uuid, toDateTime64(t.timestamp, 6, 'UTC') AS timestamp, t.distinct_id AS distinct_id,
      if(p.is_known, p.person_id, reinterpretAsUUID(sipHash128(t.distinct_id))) AS person_id,
      t.flag_key AS flag_key, t.flag_response AS flag_response, true AS is_thinned, false AS historical_migration
    FROM (
      SELECT uuid, timestamp, toDate32(timestamp) AS day, distinct_id, toString(feature_flag) AS flag_key,
        feature_flag_response AS flag_response
      FROM ${database}.deduplicated_flag_calls FINAL
      WHERE (toDate32(timestamp), distinct_id, uuid) NOT IN (SELECT toDate32(timestamp), distinct_id, uuid ${stored})
    ) AS t
    LEFT ANY JOIN (
      SELECT toDate32(timestamp) AS day, distinct_id, toString(flag_called) AS flag_key, person_id, true AS is_known ${stored}
    ) AS p USING (day, distinct_id, flag_key)`
}
