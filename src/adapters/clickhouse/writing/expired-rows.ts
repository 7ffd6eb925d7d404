// Deletes expired rows on the embedded engine. A TTL would use the machine's clock at the first merge after a start,
// even if that clock is wrong (docs/decisions/0056).

import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import { cachedUsageDays } from '#ports/events/insight-queries.ts'
import { recordingRetentionDays } from '#ports/events/recording-store.ts'
import {
  type ClickHouseClient,
  type ClickHouseClients,
  longReadSettings,
  readRows,
} from '../connection/clickhouse-clients.ts'

export interface ExpiryOptions {
  readonly nowMs: number
  readonly isTrusted: boolean
  readonly rejectRetentionDays: number
}

export function deleteExpiredRows(clients: ClickHouseClients, options: ExpiryOptions): Promise<void> {
  const { rejectRetentionDays } = options
  return clients.write(async (client, database) => {
    const inDatabase = { client, database, ...options }
    for (const table of ['rejected_events', 'replayed_rejects'])
      await deleteRows(inDatabase, { table, column: 'received_at', days: rejectRetentionDays })
    await deleteRows(inDatabase, { table: 'cached_flag_usage', column: 'stored_at', days: cachedUsageDays })
    // Parts of recordings are too large to rewrite, but each part holds only one day and can be dropped.
    const { row, items } = recordingRetentionDays
    const recordings = `${database}.replay_messages`
    for (const day of await listDays(client, recordings, '1'))
      if (isOutsideRetention(day, row, options))
        await runCommand(client, `ALTER TABLE ${recordings} DROP PARTITION ${formatPartition(day)}`)
    // Finds the expired days that still have items, which are the days that have not been cleared yet.
    const withItems = `stored_at < toDateTime('${utcDay(options.nowMs - items * dayMs)} 00:00:00', 'UTC') AND notEmpty(items)`
    for (const day of await listDays(client, recordings, withItems))
      await runCommand(client, `ALTER TABLE ${recordings} CLEAR COLUMN items IN PARTITION ${formatPartition(day)}`)
  })
}

function isOutsideRetention(day: string, keptDays: number, { nowMs, isTrusted }: ExpiryOptions): boolean {
  return day < utcDay(nowMs - keptDays * dayMs) || (isTrusted && day > utcDay(nowMs + keptDays * dayMs))
}

async function deleteRows(
  { client, database, nowMs, isTrusted }: ExpiryOptions & { client: ClickHouseClient; database: string },
  { table, column, days }: { readonly table: string; readonly column: string; readonly days: number },
): Promise<void> {
  const sqlTime = (ms: number) => `fromUnixTimestamp64Milli(${Math.floor(ms)}, 'UTC')`
  const isOld = `${column} < ${sqlTime(nowMs - days * dayMs)}`
  const isExpired = isTrusted ? `(${isOld} OR ${column} > ${sqlTime(nowMs + days * dayMs)})` : isOld
  const query = `SELECT 1 FROM ${database}.${table} WHERE ${isExpired} LIMIT 1`
  const found = await readRows(client, undefined, { query, clickhouse_settings: longReadSettings })
  // Skips the mutation if no rows have expired, since even a mutation that finds no rows writes files.
  if (found.length > 0) await runCommand(client, `ALTER TABLE ${database}.${table} DELETE WHERE ${isExpired}`)
}

async function listDays(client: ClickHouseClient, table: string, where: string): Promise<string[]> {
  const rows = await readRows<[string]>(client, undefined, {
    query: `SELECT DISTINCT toString(toDate(stored_at, 'UTC')) FROM ${table} WHERE ${where}`,
    clickhouse_settings: longReadSettings,
  })
  return rows.map(([day]) => day)
}

function formatPartition(day: string): string {
  return day.replaceAll('-', '')
}

async function runCommand(client: ClickHouseClient, query: string): Promise<void> {
  await client.command({ query, clickhouse_settings: { mutations_sync: '1' } })
}
