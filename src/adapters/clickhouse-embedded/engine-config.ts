// The engine's configuration files, as text: users and their rights, memory and thread limits for a small host, and
// settings that let parts survive a power cut. start-engine.ts writes them; engine-endpoint.ts has the passwords.

import { createHash } from 'node:crypto'
import {
  buildRowPolicies,
  buildSqlUserLogin,
  buildSqlUserSettings,
  describedBy,
  formatViewsDatabaseName,
  formatViewsUserName,
  listTablesReadByViews,
  sqlScopes,
} from '../clickhouse/connection/sql-users.ts'
import type { EngineEndpoint, EngineUser } from './engine-endpoint.ts'

export interface EngineLimits {
  /** How long a read query may run. */
  readonly queryTimeoutSeconds: number
  /** Memory limit of the whole server. */
  readonly serverMemoryBytes: number
  /** Memory limit of one read query. */
  readonly queryMemoryBytes: number
  /** Whether parts stay unchanged: the engine merges no parts, and no rows expire. Used to count the rows in a backup. */
  readonly isAsFound: boolean
}

export const defaultEngineLimits: EngineLimits = {
  queryTimeoutSeconds: 8,
  serverMemoryBytes: 1024 * 1024 * 1024,
  queryMemoryBytes: 400 * 1024 * 1024,
  isAsFound: false,
}

/** The most rows and bytes of one answer. A page of events is far smaller, but 1,000 events of 1 MB would be refused. */
const resultRowCountMax = 100_000
const resultBytesMax = 256 * 1024 * 1024

/**
 * `config.xml`. Pools and caches are small: the engine shares the host with the service, and idle threads that wake up
 * cost more than they save. `merge_tree` makes every part durable before an insert is answered.
 * Source: ours: 310 MB and 0.3 % of a core when idle.
 */
export function formatServerConfig(options: {
  storeFolder: string
  usersFile: string
  httpPort: number
  endpoint: EngineEndpoint
  limits: EngineLimits
}): string {
  const { secret, writer, reader, analyst } = options.endpoint
  const logins = [writer, reader, ...sqlScopes.map(scope => buildSqlUserLogin(analyst, scope))]
  return formatXmlElement('clickhouse', {
    path: `${options.storeFolder}/`,
    tmp_path: `${options.storeFolder}/tmp/`,
    user_files_path: `${options.storeFolder}/user_files/`,
    listen_host: '127.0.0.1',
    display_name: 'pennon', // shown to clients of the dashboard port
    http_port: options.httpPort,
    users_config: options.usersFile,
    logger: { level: 'none', console: 0 },
    max_server_memory_usage: options.limits.serverMemoryBytes,
    max_concurrent_queries: 64,
    keep_alive_timeout: 30,
    http_handlers: {
      rule: [
        { url: '/ping', handler: { type: 'ping' } },
        // Each client requests this path first. The answer hashes the number in it and the secret of this start, as a
        // proof.
        {
          methods: 'GET',
          full_url: 'regex:[^?]*/proof/[0-9a-f]{32}', // without parameters, which could change settings
          url: 'regex:/proof/(?P<nonce>[0-9a-f]{32})',
          handler: {
            type: 'predefined_query_handler',
            query: `SELECT hex(SHA256(concat({nonce:String}, '${secret}'))) FORMAT TSVRaw`,
          },
        },
        // Only requests with one of these `Authorization` headers reach the engine's own password check: the user `default`
        // has no password, `?user=` would select it regardless of that header, and the engine's function `file()` reads any
        // file that the process can read.
        {
          headers: { Authorization: `regex:Basic (${logins.map(buildBasicTokenPattern).join('|')})` },
          handler: { type: 'dynamic_query_handler', query_param_name: 'query' },
        },
      ],
    },
    mark_cache_size: 32 * 1024 * 1024,
    index_mark_cache_size: 4 * 1024 * 1024,
    primary_index_cache_size: 32 * 1024 * 1024,
    uncompressed_cache_size: 0,
    index_uncompressed_cache_size: 0,
    mmap_cache_size: 0,
    query_condition_cache_size: 4 * 1024 * 1024,
    background_pool_size: 2,
    background_merges_mutations_concurrency_ratio: 1,
    background_schedule_pool_size: 2,
    background_common_pool_size: 2,
    background_move_pool_size: 1,
    background_fetches_pool_size: 1,
    background_buffer_flush_schedule_pool_size: 1,
    background_distributed_schedule_pool_size: 1,
    background_message_broker_schedule_pool_size: 1,
    // An idle table polls for work at intervals that double each time; by default, they grow by a factor of 1.1. An insert
    // wakes the table at once.
    background_processing_pool_task_sleep_seconds_when_no_work_multiplier: 2,
    // How often the engine corrects its memory count to what it really holds; the default is twenty times a second.
    memory_worker_period_ms: 500,
    asynchronous_metrics_update_period_s: 60,
    asynchronous_heavy_metrics_update_period_s: 3600,
    merge_tree: {
      fsync_after_insert: 1,
      fsync_part_directory: 1,
      min_rows_to_fsync_after_merge: 1,
      // However many parts of a table are broken, its intact parts stay usable. Parts that were set aside are detected and
      // restored from the log.
      max_suspicious_broken_parts: 1_000_000,
      max_suspicious_broken_parts_bytes: 2 ** 50,
      // Small parts are merged often, which is a quarter cheaper with one file for all columns than with a file per
      // column.
      min_bytes_for_wide_part: 64 * 1024 * 1024,
      ...(options.limits.isAsFound && nothingMerged),
      // Small enough for the small pool above: otherwise ClickHouse refuses to start.
      number_of_free_entries_in_pool_to_execute_mutation: 1,
      number_of_free_entries_in_pool_to_lower_max_size_of_merge: 1,
      number_of_free_entries_in_pool_to_execute_optimize_entire_partition: 1,
    },
  })
}

const nothingMerged = {
  max_bytes_to_merge_at_max_space_in_pool: 1,
  max_bytes_to_merge_at_min_space_in_pool: 1,
  max_number_of_merges_with_ttl_in_pool: 0,
}

/**
 * `users.xml`. `pennon_writer` inserts and migrates. `pennon_reader` reads one database under limits and may use no table
 * function that reaches files or the network. `default` is the engine's own session, which has no password: it may open the
 * listener and count numbers, nothing else.
 */
export function formatUsersConfig(endpoint: EngineEndpoint, limits: EngineLimits): string {
  const { database, writer, reader, analyst } = endpoint
  return formatXmlElement('clickhouse', {
    profiles: {
      // Every other profile inherits from `default`.
      default: quietSettings,
      pennon_engine: { max_threads: 1, max_memory_usage: 32 * 1024 * 1024 },
      pennon_writer: { max_insert_threads: 1, max_threads: 2 },
      ...Object.fromEntries(
        sqlScopes.map(scope => [
          `pennon_analyst_${scope}`,
          {
            max_threads: 2,
            ...buildSqlUserSettings(limits.queryTimeoutSeconds, scope),
            max_memory_usage: limits.queryMemoryBytes,
            max_memory_usage_for_user: 2 * limits.queryMemoryBytes,
            max_concurrent_queries_for_user: 16,
          },
        ]),
      ),
      pennon_reader: {
        readonly: 1,
        max_threads: 2,
        ...buildReaderSettings(limits.queryTimeoutSeconds),
        max_memory_usage: limits.queryMemoryBytes,
        max_memory_usage_for_user: 2 * limits.queryMemoryBytes,
        // From this size on, a query that counts many persons continues in temporary files instead of failing.
        max_bytes_before_external_group_by: Math.floor(limits.queryMemoryBytes / 4),
        max_temporary_data_on_disk_size_for_query: temporaryBytesMax,
        max_temporary_data_on_disk_size_for_user: 2 * temporaryBytesMax,
        max_result_rows: resultRowCountMax,
        max_result_bytes: resultBytesMax,
        result_overflow_mode: 'throw',
        max_concurrent_queries_for_user: 16,
      },
    },
    quotas: { default: {} },
    users: {
      default: {
        password: '',
        networks: { ip: '127.0.0.1' },
        profile: 'pennon_engine',
        quota: 'default',
        grants: { query: ['GRANT SYSTEM LISTEN ON *.*', 'GRANT SELECT ON system.numbers'] },
      },
      [writer.username]: {
        password_sha256_hex: sha256Hex(writer.password),
        networks: { ip: '127.0.0.1' },
        profile: 'pennon_writer',
        quota: 'default',
        grants: {
          query: [
            `GRANT ALL ON ${database}.*`,
            'GRANT CREATE DATABASE ON *.*',
            ...sqlScopes.flatMap(scope => [
              `GRANT ALL ON ${formatViewsDatabaseName(database, scope)}.*`,
              `GRANT SET DEFINER ON ${formatViewsUserName(scope)}`,
            ]),
            'GRANT TABLE ENGINE ON MergeTree, TABLE ENGINE ON ReplacingMergeTree, TABLE ENGINE ON SummingMergeTree',
            'GRANT SELECT ON system.parts, SELECT ON system.tables, SELECT ON system.mutations, SELECT ON system.merge_tree_settings, SELECT ON system.processes',
            'GRANT SHOW USERS ON *.*', // system.processes shows the reader's queries too
          ],
        },
      },
      [reader.username]: {
        password_sha256_hex: sha256Hex(reader.password),
        networks: { ip: '127.0.0.1' },
        profile: 'pennon_reader',
        quota: 'default',
        ...buildReadGrants([`${database}.*`]),
      },
      ...Object.fromEntries(
        sqlScopes.flatMap(scope => {
          const user = { networks: { ip: '127.0.0.1' }, profile: `pennon_analyst_${scope}`, quota: 'default' }
          const { username, password } = buildSqlUserLogin(analyst, scope)
          const readable = [
            `${formatViewsDatabaseName(database, scope)}.*`,
            ...(scope === 'visible' ? describedBy : []),
          ]
          const tables = listTablesReadByViews(scope).map(table => `${database}.${table}`)
          const policies = Object.entries(buildRowPolicies(scope)).map(([table, filter]) => [table, { filter }])
          return [
            [username, { password_sha256_hex: sha256Hex(password), ...user, ...buildReadGrants(readable) }],
            // The user as which the views read. No client can log in as this user, since no listener accepts the name.
            [
              formatViewsUserName(scope),
              {
                ...{ password_sha256_hex: sha256Hex(endpoint.secret), ...user, ...buildReadGrants(tables) },
                databases: { [database]: Object.fromEntries(policies) },
              },
            ],
          ]
        }),
      ),
    },
  })
}

function buildReadGrants(from: readonly string[]) {
  return { grants: { query: from.map(each => `GRANT SELECT ON ${each}`) } }
}

/**
 * The settings that make the answer of every read correct and limit its run time. The client (adapters/clickhouse) also
 * sends them with each query, and a read-only user may only send equal values.
 */
function buildReaderSettings(queryTimeoutSeconds: number) {
  return {
    max_execution_time: queryTimeoutSeconds,
    cancel_http_readonly_queries_on_client_close: 1,
    send_progress_in_http_headers: 1,
    do_not_merge_across_partitions_select_final: 0,
    enable_automatic_decision_for_merging_across_partitions_for_final: 0,
    defer_partition_pruning_after_final: 1,
    optimize_move_to_prewhere_if_final: 0,
  }
}

/** The most bytes that one query may write to temporary files. */
const temporaryBytesMax = 2 * 1024 * 1024 * 1024

const quietSettings = {
  log_queries: 0,
  log_query_threads: 0,
  query_profiler_real_time_period_ns: 0,
  query_profiler_cpu_time_period_ns: 0,
  compile_expressions: 0,
  compile_aggregate_expressions: 0,
  compile_sort_description: 0,
}

type Xml = string | number | readonly Xml[] | { readonly [name: string]: Xml }

function formatXmlElement(name: string, content: Xml): string {
  if (isList(content)) return content.map(item => formatXmlElement(name, item)).join('')
  if (typeof content !== 'object') return `<${name}>${escapeXml(String(content))}</${name}>\n`
  const inner = Object.entries(content)
    .map(([child, value]) => formatXmlElement(child, value))
    .join('')
  return `<${name}>\n${inner}</${name}>\n`
}

function isList(content: Xml): content is readonly Xml[] {
  return Array.isArray(content)
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** The token that a client sends after `Basic `, escaped for a regular expression. */
function buildBasicTokenPattern({ username, password }: EngineUser): string {
  return Buffer.from(`${username}:${password}`).toString('base64').replaceAll('+', '\\+')
}

function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
