// The two connections of the event store: one user inserts and migrates, one reads under limits. Follows the engine
// when it comes back on another port or with other passwords, and turns failures into PortErrors.

import { createHmac } from 'node:crypto'
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { PortError } from '#ports/port-error.ts'
import { addAnswerChecks } from './checked-answers.ts'
import { requiresEndpointReload, toStoreError } from './clickhouse-errors.ts'
import { ProvingAgent } from './proving-agent.ts'
import { buildSqlUserLogin, formatViewsDatabaseName, type SqlScope } from './sql-users.ts'

/** Where to connect; the embedded engine's endpoint file has this shape. */
export interface ClickHouseEndpoint {
  readonly url: string
  readonly database: string
  /**
   * On each connection, the server proves that it knows this secret before anything is sent; null for an operator's server.
   */
  readonly secret: string | null
  readonly writer: { readonly username: string; readonly password: string }
  readonly reader: { readonly username: string; readonly password: string }
  /** Runs users' SQL. On an operator's server this user must be created first: `sql/set-up.ts`. */
  readonly analyst: { readonly username: string; readonly password: string }
}

export type ClickHouseClient = ReturnType<typeof createClient>

export interface ClickHouseClients {
  write<T>(call: (client: ClickHouseClient, database: string, endpoint: ClickHouseEndpoint) => Promise<T>): Promise<T>
  /**
   * Runs users' SQL: like `read`, but the server and the caller apply the time limit, and the engine's own errors are
   * thrown, since most of them are due to the query.
   */
  analyse<T>(scope: SqlScope, call: (client: ClickHouseClient, database: string) => Promise<T>): Promise<T>
  /**
   * The query limit covers all queries of `call` together; `call` gets a signal, which it passes to each query. It aborts
   * with the reason of `signal`, or at the limit with a PortError `timeout`; that reason is thrown.
   */
  read<T>(call: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
  /** For counts that no client waits for: like `read`, but each query may take minutes, regardless of the query limit. */
  count<T>(call: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
  close(): Promise<void>
}

export interface ClickHouseClientsOptions {
  /** Called at first use and after each failure to connect; returns null while the endpoint is not known yet. */
  readonly endpoint: () => ClickHouseEndpoint | null
  readonly queryTimeoutSeconds: number
}

/**
 * The server's buffer for an answer. Nearly all answers fit and need no file. Each of the reader's connections may use a
 * buffer.
 */
const answerBufferBytes = 1024 * 1024
/** How much later the client ends a query than the server, so that the server's own limit ends it first. */
const graceMs = 500
/** How long the server may be silent during a write: inserting 24 MB or moving a partition takes about a second. */
const writeTimeoutMs = 60_000
/**
 * Holds the progress reports (`longReadSettings`) that the server sends as headers during days of waiting, about 300 bytes
 * each.
 */
const writeHeaderBytesMax = 4 * 1024 * 1024

/**
 * Settings for reads by the writing user, which may take minutes on a large store. The server reports progress, so that the
 * client does not give up on a silent connection, and ends a read when its connection closes, so that abandoned reads do
 * not pile up.
 */
export const longReadSettings = {
  readonly: '2',
  cancel_http_readonly_queries_on_client_close: 1,
  send_progress_in_http_headers: 1,
  http_headers_progress_interval_ms: String(writeTimeoutMs / 4),
} as const
/** How long a background count may run: it may cover hundreds of millions of events, and the server may be busy. */
const countSecondsMax = 600
/** Memory limit of a background count. Grouping spills to files before it reaches the limit. */
const countBytesMax = 400 * 1024 * 1024
const idleConnectionMs = 20_000

/**
 * Retries a call once when it could not connect and the endpoint has changed since. Calls must therefore be repeatable.
 */
export function createClickHouseClients(options: ClickHouseClientsOptions): ClickHouseClients {
  let current: Connected | null = null

  /** The clients for the current endpoint; null when it is still the endpoint that failed. */
  const connect = (failed: Connected | null): Connected | null => {
    if (current !== null && current !== failed) return current
    const endpoint = options.endpoint()
    const key = JSON.stringify(endpoint)
    if (key === failed?.key) return null
    const closing = current
    current =
      endpoint === null
        ? null
        : { key, endpoint, database: endpoint.database, ...openClients(endpoint, options.queryTimeoutSeconds) }
    if (closing !== null) void closeClients(closing)
    return current
  }

  const call = async <T>(
    which: 'write' | 'read' | 'count' | SqlScope,
    run: (connected: Connected) => Promise<T>,
  ): Promise<T> => {
    const toCallError = (error: unknown) =>
      which === 'visible' || which === 'job' ? error : toStoreError(error, which === 'write' ? 'write' : 'read')
    const first = connect(null)
    if (first === null) throw new PortError('event-store', 'unavailable', new Error('the engine is not running'))
    try {
      return await run(first)
    } catch (error) {
      const second = requiresEndpointReload(error) ? connect(first) : null
      if (second === null) throw toCallError(error)
      return await run(second).catch((again: unknown) => {
        throw toCallError(again)
      })
    }
  }

  return {
    write: run => call('write', ({ write, database, endpoint }) => run(write, database, endpoint)),
    count: async (run, signal = new AbortController().signal) => {
      try {
        return await call('count', ({ count }) => run(count, signal))
      } catch (error) {
        throw signal.aborted ? signal.reason : error
      }
    },
    analyse: (scope, run) => call(scope, connected => run(connected[scope], connected.database)),
    read: async (run, signal) => {
      const limit = AbortSignal.timeout(options.queryTimeoutSeconds * 1000 + graceMs)
      const either = signal === undefined ? limit : AbortSignal.any([signal, limit])
      try {
        const answer = await call('read', ({ read }) => run(read, either))
        // A stream that an abort closed early may look complete, so check the signals before returning the answer.
        either.throwIfAborted()
        return answer
      } catch (error) {
        if (signal?.aborted) throw signal.reason
        throw limit.aborted ? new PortError('event-store', 'timeout', error) : error
      }
    },
    close: async () => {
      const closing = current
      current = null
      if (closing !== null) await closeClients(closing)
    },
  }
}

/** Runs a query and reads all of its rows, each as a list of its columns. */
export async function readRows<Row>(
  client: ClickHouseClient,
  signal: AbortSignal | undefined,
  query: Omit<Parameters<ClickHouseClient['query']>[0], 'format' | 'abort_signal'>,
): Promise<Row[]> {
  const ends = signal !== undefined && { abort_signal: signal }
  return (await client.query({ ...query, ...ends, format: 'JSONCompactEachRow' })).json<Row>()
}

interface Connected {
  readonly key: string
  readonly database: string
  readonly endpoint: ClickHouseEndpoint
  readonly write: ClickHouseClient
  readonly read: ClickHouseClient
  readonly count: ClickHouseClient
  /** Runs users' SQL in the scope `visible`. */
  readonly visible: ClickHouseClient
  readonly job: ClickHouseClient
}

function openClients(endpoint: ClickHouseEndpoint, queryTimeoutSeconds: number) {
  const shared = {
    url: endpoint.url,
    log: { level: ClickHouseLogLevel.OFF }, // it would print failed queries with their parameters
    use_multipart_params_auto: true, // thousands of values do not fit a URL
    compression: { request: false, response: false }, // costs more than loopback; a read-only user may not ask for it
  }
  const buildConnectionOptions = (countMax: number) => ({
    max_open_connections: countMax,
    ...(endpoint.secret !== null && {
      http_agent: new ProvingAgent(endpoint.secret, countMax),
      // An idle connection stays open long enough that a proved connection is reused, but closes before the engine's own
      // limit of 30 s.
      keep_alive: { enabled: true, idle_socket_ttl: idleConnectionMs },
    }),
  })
  // Sends no settings: those of these users are in their profile, and the users may not change them.
  const createAnalystClient = (scope: SqlScope) =>
    createClient({
      ...shared,
      ...buildSqlUserLogin(endpoint.analyst, scope),
      ...buildConnectionOptions(16),
      database: formatViewsDatabaseName(endpoint.database, scope),
      request_timeout: queryTimeoutSeconds * 1000 + 2 * graceMs,
    })
  return {
    write: createClient({
      ...shared,
      ...endpoint.writer,
      ...buildConnectionOptions(8),
      request_timeout: writeTimeoutMs,
      max_response_headers_size: writeHeaderBytesMax,
    }),
    read: addAnswerChecks(
      createClient({
        ...shared,
        ...endpoint.reader,
        ...buildConnectionOptions(32),
        database: endpoint.database,
        request_timeout: queryTimeoutSeconds * 1000 + 2 * graceMs,
        clickhouse_settings: buildReadSettings(queryTimeoutSeconds),
      }),
    ),
    // Counts run as the writing user, since the reading user may not raise its limits.
    count: addAnswerChecks(
      createClient({
        ...shared,
        ...endpoint.writer,
        ...buildConnectionOptions(2),
        database: endpoint.database,
        request_timeout: writeTimeoutMs,
        max_response_headers_size: writeHeaderBytesMax,
        clickhouse_settings: { ...buildReadSettings(countSecondsMax), ...longReadSettings, ...countSettings },
      }),
    ),
    visible: createAnalystClient('visible'),
    job: createAnalystClient('job'),
  }
}

/**
 * Settings that make reads correct whatever the server's defaults: one event in two partitions counts once (`FINAL` merges
 * across partitions before filters and partition pruning apply), and a cancelled request ends its query (both of the last
 * two settings are needed for that). The embedded engine's read-only user has the same values in its profile. Source: ours,
 * docs/decisions/0006-dedupe-by-reading-final.md.
 */
function buildReadSettings(queryTimeoutSeconds: number) {
  return {
    max_execution_time: queryTimeoutSeconds,
    do_not_merge_across_partitions_select_final: 0 as const,
    enable_automatic_decision_for_merging_across_partitions_for_final: 0 as const,
    defer_partition_pruning_after_final: 1,
    optimize_move_to_prewhere_if_final: 0 as const,
    cancel_http_readonly_queries_on_client_close: 1 as const,
    send_progress_in_http_headers: 1 as const,
    // The answer must not begin before it is complete: if it had begun and then reached a limit, the server could only
    // break it off.
    wait_end_of_query: 1 as const,
    // Larger answers go to a file: see `checked-answers.ts`.
    buffer_size: String(answerBufferBytes),
  }
}

const countSettings = {
  max_memory_usage: String(countBytesMax),
  max_bytes_before_external_group_by: String(countBytesMax / 4),
} as const

async function closeClients({ write, read, count, visible, job }: Connected): Promise<void> {
  await Promise.all([write, read, count, visible, job].map(client => client.close()))
}

/**
 * `CLICKHOUSE_URL`: `http(s)://user:pass@host:8123/db`, one user for both.
 * @throws Error for the operator when the path is not the name of a database.
 */
export function parseEndpointUrl(text: string): ClickHouseEndpoint {
  const url = new URL(text)
  const database = url.pathname === '/' || url.pathname === '' ? 'default' : url.pathname.slice(1).replace(/\/$/, '')
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(database)) {
    throw new Error('CLICKHOUSE_URL: the path must be a database name, for example http://localhost:8123/pennon')
  }
  const user = { username: decodeURIComponent(url.username) || 'default', password: decodeURIComponent(url.password) }
  // All processes of Pennon must know this password, and no one else may, so it is derived from the password in
  // `CLICKHOUSE_URL`.
  const password = createHmac('sha256', user.password)
    .update(`pennon analyst ${user.username} ${database}`)
    .digest('hex')
  const analyst = { username: `pennon_analyst_${database}`, password }
  return { url: url.origin, database, secret: null, writer: user, reader: user, analyst }
}
