// Checks, before anything relies on a PostgreSQL database, that it can be used; finds the version of its state, and creates
// its schema. Messages name host and database, never a password.

import pg from 'pg'
import { err, ok, type Result } from '#core/result.ts'
import { closeClientIgnoringErrors } from './close-connections.ts'
import { buildClientSettings } from './open-postgres.ts'
import { toPostgresPortError } from './postgres-errors.ts'
import { chooseSchema, type SchemaChoice, type VisibleSchema } from './state-schema.ts'

export interface PostgresCheck {
  /** `host:port/database` */
  readonly place: string
  /** Like `15.8`. */
  readonly version: string
  /** A replica that follows a primary. */
  readonly isReplica: boolean
  /** The schema that has our tables, or would get them. */
  readonly state: SchemaChoice
  /** Whether the role may create tables in that schema and, if the schema is missing, the schema. */
  readonly mayCreate: boolean
}

export interface PostgresProblem {
  /** One line that names the place and the problem. */
  readonly message: string
  /**
   * Whether the problem may pass by itself: true when the server does not answer at present; false when an operator must
   * change something.
   */
  readonly mayPass: boolean
}

interface CheckedRow {
  readonly version: string
  readonly number: string
  readonly encoding: string
  readonly replica: boolean
  readonly path: string
  readonly schema: string | null
}

/** Lists the schemas with their tables, except tables that belong to an extension. */
const findSchemas = `
  SELECT n.nspname AS schema, coalesce(array_agg(c.relname::text ORDER BY c.relname) FILTER (WHERE c.oid IS NOT NULL), '{}') AS tables
  FROM pg_namespace AS n LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
  WHERE n.nspname = ANY(current_schemas(false)) GROUP BY n.nspname`

const findRights = `
  SELECT CASE WHEN $2 THEN has_schema_privilege($1, 'CREATE')
    ELSE has_database_privilege(current_database(), 'CREATE') END AS creates`

/**
 * This version has all that we use (`COLLATE "C"`, identity columns, `unnest` of several lists); older versions are out of
 * support.
 */
const majorVersionMin = 12

/** Connects once and inspects server, role and schemas. Changes nothing. @param connectMsMax limit for connecting. */
export async function checkPostgres(
  url: string,
  connectMsMax = 5_000,
): Promise<Result<PostgresCheck, PostgresProblem>> {
  const place = describeServer(url)
  const toProblem = (reason: string, mayPass = false) =>
    err({ message: `PostgreSQL at ${place} cannot be used: ${reason}`, mayPass })
  let client: pg.Client | undefined
  try {
    client = new pg.Client({ ...buildClientSettings(url, 'check', connectMsMax), query_timeout: connectMsMax })
    client.on('error', () => undefined) // the call that fails because of it reports it
    await client.connect()
    const { rows } = await client.query<CheckedRow>(
      `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS number,
        current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS replica,
        current_schema() AS schema, current_setting('search_path') AS path`,
    )
    const { version, number, encoding, replica, schema, path } = rows[0]!
    if (Number(number) < majorVersionMin * 10_000)
      return toProblem(`it is version ${version}; Pennon needs ${majorVersionMin} or newer`)
    if (encoding !== 'UTF8') return toProblem(`its encoding is ${encoding}; create the database with ENCODING 'UTF8'`)
    const { rows: found } = await client.query<VisibleSchema>(findSchemas)
    const state = chooseSchema(path, schema, found)
    let mayCreate = false
    if (!('refusal' in state)) {
      const { rows: rights } = await client.query<{ creates: boolean }>(findRights, [state.schema, state.isMade])
      mayCreate = rights[0]!.creates
    }
    return ok({ place, version, isReplica: replica, state, mayCreate })
  } catch (cause) {
    const isAnswer = cause instanceof pg.DatabaseError && !/^(08|53|57)/.test(cause.code ?? '')
    return toProblem(`${explainCause(toPostgresPortError(cause))}${formatRemedy(cause)}`, !isAnswer)
  } finally {
    await closeClientIgnoringErrors(client)
  }
}

/** `host:port/database` of a `postgres://` URL whose parts can be decoded, as the driver reads it. */
export function describeServer(url: string): string {
  const { hostname, port, pathname, searchParams, username } = new URL(url)
  const named = hostname === '' ? (process.env.PGHOST ?? 'localhost') : decodeURIComponent(hostname)
  const host = searchParams.get('host') ?? named
  const database = decodeURIComponent(pathname.slice(1)) || (process.env.PGDATABASE ?? decodeURIComponent(username))
  return `${host}:${port === '' ? (process.env.PGPORT ?? '5432') : port}/${database}`
}

/** A hint on what to check, for the most frequent failures; otherwise ''. */
function formatRemedy(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (/^E(CONNREFUSED|NOTFOUND|HOSTUNREACH|NETUNREACH|AI_AGAIN)|^ETIMEDOUT/.test(code))
    return '. Check that it is running, and the host and port in DATABASE_URL'
  if (code.startsWith('28')) return '. Check the user and password in DATABASE_URL'
  return code === '3D000' ? '. Create the database, or set another in DATABASE_URL' : ''
}

/** The message of a PortError's cause; if several addresses were tried, the message of each attempt. */
function explainCause(cause: unknown): string {
  const origin = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause
  if (origin instanceof AggregateError) return origin.errors.map(explainCause).join(', ')
  return origin instanceof Error ? origin.message || origin.name : String(origin)
}

const answerMsMax = 10_000

/**
 * For a database in which `checkPostgres` found state.
 * @returns the number of the state's last migration; NaN when the state does not record it.
 * @throws PortError when the database cannot be reached or read.
 */
export async function findPostgresSchemaVersion(url: string): Promise<number> {
  return withClient(url, async client => {
    const { rows } = await client.query<{ version: string | null }>(
      'SELECT max(version) AS version FROM schema_version',
    )
    return Number(rows[0]!.version) || Number.NaN
  })
}

/** @throws PortError, which says what to do when the role lacks the right. */
export async function createPostgresSchema(url: string, schema: string): Promise<void> {
  await withClient(url, async client => {
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${pg.escapeIdentifier(schema)}`)
  })
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ ...buildClientSettings(url, 'find schema', answerMsMax), query_timeout: answerMsMax })
  client.on('error', () => undefined) // the call that fails because of it reports it
  try {
    await client.connect()
    return await work(client)
  } catch (cause) {
    throw toPostgresPortError(cause)
  } finally {
    await closeClientIgnoringErrors(client)
  }
}
