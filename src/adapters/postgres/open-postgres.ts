// Pools of sessions on PostgreSQL: their size, their time limits, and the handling of broken sessions. The statements are
// in the stores.

import pg from 'pg'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { trackSockets } from './close-connections.ts'
import { toConnectPortError, toPostgresPortError } from './postgres-errors.ts'

export interface PoolOptions {
  readonly url: string
  /** The pool's name, which `pg_stat_activity` shows after `pennon `. */
  readonly name: string
  /** The most sessions; each is opened when it is needed and closed after a minute without work. */
  readonly sizeMax: number
  /**
   * How long a statement may run; 0 = no limit. The server ends it; if the server does not answer, the pool gives up.
   */
  readonly statementMsMax: number
  /** How long a statement may wait for locks; when absent, as long as it may run. */
  readonly lockMsMax?: number
  /** How long it may take to get a session, whether new or returned to the pool. */
  readonly connectMsMax: number
  /**
   * Whether the statements find every row by an index, so that none of their plans may scan a table; see `indexedPlans`.
   */
  readonly isIndexed?: true
  readonly logger: Logger
}

export interface Session {
  /** Returns rows as objects or, with `rowMode: 'array'`, as arrays. @throws what the driver throws. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>>
  /** Returns the session to the pool, or closes it if it is broken or if `close` is true. */
  release(close?: boolean): void
}

export interface Pool {
  /** @throws PortError `unavailable` or `timeout`. */
  connect(): Promise<Session>
  /** Runs one statement on any session. @throws PortError, or what the driver throws for a bug of ours. */
  query<Row extends unknown[]>(query: pg.QueryArrayConfig): Promise<pg.QueryArrayResult<Row>>
  query<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<Row>>
  /**
   * Closes the pool. Waits for running statements, within the limit in `close-connections.ts`; statements that take longer
   * fail.
   */
  end(): Promise<void>
}

/**
 * The client's time limit is this much longer than the server's, so that the server, whose error says more, ends the
 * statement.
 */
const answerGraceMs = 1_000
const idleTransactionMsMax = 30_000

/**
 * A prepared statement keeps its plan, and a plan that was made while a table was empty would scan the table even when it
 * is full. With these settings, plans use the index from the beginning, and each statement is planned only once per
 * session.
 */
const indexedPlans = ['enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off']
  .concat('plan_cache_mode=force_generic_plan', 'jit=off')
  .map(setting => `-c ${setting}`)
  .join(' ')

/** Opens no connection yet. @throws Error with a line for operators when the URL's TLS settings contradict each other. */
export function openPool(options: PoolOptions): Pool {
  const { logger, statementMsMax, lockMsMax } = options
  const sockets = trackSockets()
  const pool = new pg.Pool({
    stream: sockets.stream,
    ...buildClientSettings(options.url, options.name, options.connectMsMax, options.isIndexed && indexedPlans),
    max: options.sizeMax,
    idleTimeoutMillis: 60_000,
    // Sessions are reopened after an hour, so that a server that has become the primary since gets its share of them.
    maxLifetimeSeconds: 3_600,
    ...(statementMsMax > 0 && { statement_timeout: statementMsMax, query_timeout: statementMsMax + answerGraceMs }),
    ...(lockMsMax !== undefined && { lock_timeout: lockMsMax }),
    idle_in_transaction_session_timeout: idleTransactionMsMax,
  })
  // Without a listener, an idle session that the server ends would end this process.
  pool.on('error', cause => logger.debug({ err: toPostgresPortError(cause) }, 'idle session ended'))
  // Each session needs a listener of its own: while a session is in use, the pool's listener is not attached to it.
  pool.on('connect', client => {
    client.on('error', cause => logger.debug({ err: toPostgresPortError(cause) }, 'session ended'))
  })
  return {
    connect: async () => {
      try {
        return createSession(await pool.connect())
      } catch (cause) {
        throw toConnectPortError(cause)
      }
    },
    query: async (query: pg.QueryConfig | pg.QueryArrayConfig) => {
      try {
        return (await pool.query(query)) as never
      } catch (cause) {
        throw toPostgresPortError(cause)
      }
    },
    end: () => sockets.endInTime(() => pool.end()),
  }
}

function createSession(client: pg.PoolClient): Session {
  let isBroken = false
  return {
    query: async (text, values) => {
      try {
        return await client.query(text, values)
      } catch (cause) {
        // After a statement timed out here, its answer may still arrive, or the server may be gone: the connection must
        // not be used again.
        if (!(cause instanceof pg.DatabaseError)) isBroken = true
        throw cause
      }
    },
    release: (close = false) => client.release(isBroken || close),
  }
}

/** Runs `work` in a transaction; everything is undone when it throws. @throws what `work` throws, or the driver. */
export async function runInTransaction<T>(
  pool: Pool,
  begin: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await pool.connect()
  let isInTransaction = false
  try {
    await session.query(begin)
    try {
      const result = await work(session)
      await session.query('COMMIT')
      return result
    } catch (cause) {
      // A failed ROLLBACK is ignored: closing the session also rolls back, and the caller needs the error that `work`
      // threw.
      await session.query('ROLLBACK').catch(() => {
        isInTransaction = true
      })
      throw cause
    }
  } finally {
    session.release(isInTransaction)
  }
}

/**
 * The settings that all connections share. `sslmode` in the URL means what it means to libpq.
 * @param options options for the server, added to the options in the URL, which would otherwise replace them.
 */
export function buildClientSettings(url: string, name: string, connectMsMax: number, options = ''): pg.ClientConfig {
  const place = new URL(url)
  const given = place.searchParams.get('options') ?? ''
  place.searchParams.delete('options')
  return {
    connectionString: applyLibpqTls(place.href),
    options: `${options} ${given}`.trim(),
    application_name: `pennon ${name}`,
    connectionTimeoutMillis: connectMsMax,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: selectTypeParser as typeof pg.types.getTypeParser },
  }
}

/**
 * Gives `sslmode` libpq's meaning: the driver's own `require` checks the certificate, which fails for most managed servers.
 */
function applyLibpqTls(url: string): string {
  if (!/[?&]sslmode=/.test(url) || /[?&]uselibpqcompat=/.test(url)) return url
  return `${url}&uselibpqcompat=true`
}

const int8 = 20

function selectTypeParser(oid: number, format: 'text' | 'binary' = 'text'): (text: string) => unknown {
  return oid === int8 && format === 'text' ? parseSafeInteger : pg.types.getTypeParser(oid, format as 'text')
}

/**
 * Parses the value of a BIGINT column: an id, a version or epoch ms. @throws PortError `corrupt` if a number cannot hold it
 * exactly.
 */
function parseSafeInteger(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new PortError('state', 'corrupt', new Error(`${text} is too large a number`))
  return value
}
