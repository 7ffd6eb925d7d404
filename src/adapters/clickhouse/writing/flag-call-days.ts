// Records on which days flag calls arrived. Cached counts of a day are valid while its record is unchanged. A record is a
// sum of random numbers, one per insert: it depends on no clock and no order and is written without a read. So a store with
// a different history, such as an older copy, does not have the same sum by chance.

import { randomInt } from 'node:crypto'
import type { StoredEvent } from '#core/events/stored-event.ts'
import { type DeduplicatedCall, flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import { dayMs } from '#core/time.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import type { RowWriteResult } from './event-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'

export interface FlagCallDay {
  readonly projectId: number
  /** Since 1970-01-01. */
  readonly day: number
}

/** Lists each project and day of the calls once. */
export function listDaysOfFlagCalls(
  events: readonly StoredEvent[],
  deduplicated: readonly DeduplicatedCall[],
): FlagCallDay[] {
  const arrivals = new Map<string, FlagCallDay>()
  const addArrival = ({ projectId, timestampMs }: { projectId: number; timestampMs: number }) => {
    const day = Math.floor(timestampMs / dayMs)
    arrivals.set(`${projectId} ${day}`, { projectId, day })
  }
  // Selects calls by event name, not by flag, since a copy that names no flag may replace a call that names a flag.
  for (const event of events) if (event.event === flagCallEventName) addArrival(event)
  for (const call of deduplicated) addArrival(call)
  return [...arrivals.values()]
}

export const arrivalColumns = 'project_id, day, token'

export function writeFlagCallDayRow(to: RowBinaryWriter, { projectId, day }: FlagCallDay): RowWriteResult {
  to.uint32(projectId)
  to.uint32(day >>> 0)
  to.int64(randomInt(2 ** 32), randomInt(2 ** 31))
  return 'written'
}

/**
 * Records the days of a published job's calls. The job's rows are already in `events`, so a repeat after a crash finds
 * them.
 */
export function recordFlagCallDaysOfJob(
  client: ClickHouseClient,
  database: string,
  importJobId: number,
): Promise<unknown> {
  return client.command({
    query: `INSERT INTO ${database}.flag_call_arrivals (${arrivalColumns})
      SELECT project_id, day, rand64() FROM (
        SELECT DISTINCT project_id, toDate32(timestamp) AS day FROM ${database}.events
        WHERE import_partition = {job:UInt32} AND event = {event:String}
      )`,
    query_params: { job: importJobId, event: flagCallEventName },
  })
}

/** Invalidates all cached counts of every project, since the days of a dropped job are no longer known. */
export function invalidateAllCachedUsage(client: ClickHouseClient, database: string): Promise<unknown> {
  return client.command({
    query: `INSERT INTO ${database}.flag_call_arrivals (${arrivalColumns}) SELECT 0, toDate32(0), rand64()`,
  })
}
