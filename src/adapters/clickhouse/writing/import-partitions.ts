// Publishes and discards the rows of one import job. A job has separate partitions (`import_partition`), so publishing and
// discarding are operations on whole partitions: nothing is rewritten, other jobs and live rows are not touched, and
// repeating the operation after a crash finishes it. Imports without an explicit job share partition 1 and are not undone
// this way.

import assert from 'node:assert/strict'
import { PortError } from '#ports/port-error.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { invalidateAllCachedUsage, recordFlagCallDaysOfJob } from './flag-call-days.ts'

/** Moves the job's pending partitions into `events`, one at a time. */
export function publishJobPartitions(clients: ClickHouseClients, importJobId: number): Promise<void> {
  assertOwnPartition(importJobId)
  return clients.write(async (client, database) => {
    for (const partition of await listPartitions(client, database, 'events_pending', importJobId)) {
      await client.command({
        query: `ALTER TABLE ${database}.events_pending MOVE PARTITION ID '${partition}' TO TABLE ${database}.events`,
      })
    }
    await recordFlagCallDaysOfJob(client, database, importJobId)
  })
}

/** Holds the properties that are being added to a job's rows, in a separate partition per attempt. */
export const knownTable = 'known_person_properties'

/** Drops the job's partitions, pending and published. */
export function discardJobPartitions(clients: ClickHouseClients, importJobId: number): Promise<void> {
  assertOwnPartition(importJobId)
  return clients.write(async (client, database) => {
    for (const table of [knownTable, 'events_pending', 'events'])
      await dropJobPartitions(client, database, table, importJobId)
    await invalidateAllCachedUsage(client, database)
  })
}

export async function dropJobPartitions(
  client: ClickHouseClient,
  database: string,
  table: string,
  importJobId: number,
): Promise<void> {
  for (const partition of await listPartitions(client, database, table, importJobId))
    await client.command({ query: `ALTER TABLE ${database}.${table} DROP PARTITION ID '${partition}'` })
}

/**
 * Deletes the rows of an implicit job from the partition that it shares with other jobs, and checks that no row is left.
 */
export function deleteSharedJobRows(clients: ClickHouseClients, importJobId: number): Promise<void> {
  assertOwnPartition(importJobId)
  return clients.write(async (client, database) => {
    const ofJob = 'import_partition = 1 AND import_job_id = {job:UInt32}'
    const query_params = { job: importJobId }
    await client.command({
      query: `DELETE FROM ${database}.events WHERE ${ofJob}`,
      query_params,
      clickhouse_settings: { lightweight_deletes_sync: '2' },
    })
    await invalidateAllCachedUsage(client, database)
    const [row] = await readRows<[number | string]>(client, undefined, {
      query: `SELECT count() FROM ${database}.events WHERE ${ofJob}`,
      query_params,
    })
    if (Number(row![0]) > 0)
      throw new PortError('event-store', 'unavailable', new Error(`rows of import job ${importJobId} are still there`))
  })
}

export async function listPartitions(
  client: ClickHouseClient,
  database: string,
  table: string,
  importJobId: number,
): Promise<string[]> {
  const rows = await readRows<[string]>(client, undefined, {
    query: `SELECT DISTINCT partition_id FROM system.parts
      WHERE database = {database:String} AND table = {table:String} AND active
        AND startsWith(partition_id, {prefix:String}) ORDER BY partition_id`,
    query_params: { database, table, prefix: `${importJobId}-` }, // '7-202611': (import_partition, month of arrival)
  })
  return rows.map(([partition]) => {
    assert.match(partition, /^\d+-\d+$/)
    return partition
  })
}

export function assertOwnPartition(importJobId: number): void {
  assert(Number.isInteger(importJobId) && importJobId >= 2, `import job ${importJobId} has no partition of its own`)
}
