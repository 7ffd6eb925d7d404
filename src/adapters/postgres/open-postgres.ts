// Pools of sessions on PostgreSQL: how many, how long anything may take, and what happens to a session that broke.
// What is asked in them is the stores' business.

import pg from 'pg'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { trackSockets } from './end-in-time.ts'
import { connectPortError, postgresPortError } from './postgres-errors.ts'

export interface PoolOptions {
  readonly url: string
  /** Seen in pg_stat_activity after `pennon `. */
  readonly name: string
  /** Sessions at most; one is opened when it is needed and closed after a minute without work. */
  readonly sizeMax: number
  /** How long a statement may run; 0 = any time. The server ends it; a server that does not answer is given up. */
  readonly statementMsMax: number
  /** How long a statement may wait for locks, the whole limit of it when absent. */
  readonly lockMsMax?: number
  /** How long it may take to get a session, a new one or one that somebody gives back. */
  readonly connectMsMax: number
  /** The statements find every row by an index, so that none of their plans may scan a table; see `indexedPlans`. */
  readonly isIndexed?: true
  readonly logger: Logger
}

/** A session for one piece of work. */
export interface Session {
  /** Rows by name; or give `rowMode: 'array'`. @throws what the driver throws. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>>
  /** Back to the pool; one that broke is closed instead, as with `close`. */
  release(close?: boolean): void
}

export interface Pool {
  /** @throws PortError `unavailable` or `timeout`. */
  connect(): Promise<Session>
  /** One statement, on any session. @throws what the driver throws. */
  query<Row extends unknown[]>(query: pg.QueryArrayConfig): Promise<pg.QueryArrayResult<Row>>
  query<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<Row>>
  /** Waits for the work under way, within the limit of `end-in-time.ts`; what takes longer fails. */
  end(): Promise<void>
}

/** Later than the server's own limit, which says more. */
const answerGraceMs = 1_000
const idleTransactionMsMax = 30_000

/**
 * A statement keeps its plan, and the one that was made while a table was empty would scan it once it is full. With these
 * settings it walks the index from the beginning, and planning is paid once per session.
 */
const indexedPlans = ['enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off']
  .concat('plan_cache_mode=force_generic_plan', 'jit=off')
  .map(setting => `-c ${setting}`)
  .join(' ')

/** Opens nothing yet. @throws Error with a line for people when the URL's TLS settings contradict each other. */
export function openPool(options: PoolOptions): Pool {
  const { logger, statementMsMax, lockMsMax } = options
  const sockets = trackSockets()
  const pool = new pg.Pool({
    stream: sockets.stream,
    ...clientSettings(options.url, options.name, options.connectMsMax, options.isIndexed && indexedPlans),
    max: options.sizeMax,
    idleTimeoutMillis: 60_000,
    // A server that became the primary gets its share of sessions within the hour.
    maxLifetimeSeconds: 3_600,
    ...(statementMsMax > 0 && { statement_timeout: statementMsMax, query_timeout: statementMsMax + answerGraceMs }),
    ...(lockMsMax !== undefined && { lock_timeout: lockMsMax }),
    idle_in_transaction_session_timeout: idleTransactionMsMax,
  })
  // Without a listener, a session that the server ends while nobody uses it would end this process.
  pool.on('error', cause => logger.debug({ err: postgresPortError(cause) }, 'an idle session ended'))
  // The pool takes its own listener off a session while that is in use.
  pool.on('connect', client => {
    client.on('error', cause => logger.debug({ err: postgresPortError(cause) }, 'a session ended'))
  })
  return {
    connect: async () => {
      try {
        return sessionOf(await pool.connect())
      } catch (cause) {
        throw connectPortError(cause)
      }
    },
    query: (query: pg.QueryConfig | pg.QueryArrayConfig) => pool.query(query) as Promise<never>,
    end: () => sockets.endInTime(() => pool.end()),
  }
}

function sessionOf(client: pg.PoolClient): Session {
  let isBroken = false
  return {
    query: async (text, values) => {
      try {
        return await client.query(text, values)
      } catch (cause) {
        // When a statement was given up, its answer may still arrive here, or the server may be gone: nobody else may get
        // this connection.
        if (!(cause instanceof pg.DatabaseError)) isBroken = true
        throw cause
      }
    },
    release: (close = false) => client.release(isBroken || close),
  }
}

/** Runs `work` in a transaction; everything is undone when it throws. @throws what `work` throws, or the driver. */
export async function inTransaction<T>(pool: Pool, begin: string, work: (session: Session) => Promise<T>): Promise<T> {
  const session = await pool.connect()
  try {
    await session.query(begin)
    try {
      const result = await work(session)
      await session.query('COMMIT')
      return result
    } catch (cause) {
      // A session that cannot roll back is closed by `release`, which rolls back as well.
      await session.query('ROLLBACK').catch(() => undefined)
      throw cause
    }
  } finally {
    session.release()
  }
}

/**
 * What every connection has in common. `sslmode` of the URL means what it means to libpq.
 * @param options for the server, beside those of the URL, which would replace them otherwise.
 */
export function clientSettings(url: string, name: string, connectMsMax: number, options = ''): pg.ClientConfig {
  const place = new URL(url)
  const given = place.searchParams.get('options') ?? ''
  place.searchParams.delete('options')
  return {
    connectionString: withLibpqTls(place.href),
    options: `${options} ${given}`.trim(),
    application_name: `pennon ${name}`,
    connectionTimeoutMillis: connectMsMax,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: typeParserOf as typeof pg.types.getTypeParser },
  }
}

/** The driver's own reading of `require` checks the certificate, which fails for most managed servers. */
function withLibpqTls(url: string): string {
  if (!/[?&]sslmode=/.test(url) || /[?&]uselibpqcompat=/.test(url)) return url
  return `${url}&uselibpqcompat=true`
}

const int8 = 20

function typeParserOf(oid: number, format: 'text' | 'binary' = 'text'): (text: string) => unknown {
  return oid === int8 && format === 'text' ? safeInteger : pg.types.getTypeParser(oid, format as 'text')
}

/** BIGINT columns hold ids, versions and epoch ms. @throws PortError `corrupt` for what a number would change. */
function safeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new PortError('state', 'corrupt', new Error(`${text} is too large a number`))
  return value
}
