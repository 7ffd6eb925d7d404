// Runs the queries of exports: one at a time per process, so that any number of exports leaves the engine capacity for
// other queries. Retries while the engine restarts.

import { setTimeout as sleep } from 'node:timers/promises'
import { createQueryQueue } from '#adapters/clickhouse/connection/query-queue.ts'
import type { ExportedEvent } from '#ports/events/event-queries.ts'
import { PortError } from '#ports/port-error.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { tieBreak } from '../queries/event-filter.ts'
import { type SelectedEventRow, toEventView, viewColumns } from '../queries/event-rows.ts'

/** Runs one query when it is its turn among exports, under the query limit. */
export type RunExportQuery = <T>(query: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>) => Promise<T>

export interface ExportQueryRunners {
  /** Fails at once while the store is unavailable. */
  readonly once: RunExportQuery
  /** Retries while the store is unavailable. */
  readonly patiently: RunExportQuery
}

export interface ExportQueriesOptions {
  /** How long to wait before the first retry, the second retry and so on. */
  readonly retryPausesMs: readonly number[]
}

/** Together, these pauses are longer than the engine takes to restart after a crash. */
const usualPausesMs = [250, 1_000, 2_000, 4_000]
/** More than the number of exports that may run at once, each of which has one query at a time. */
const waitingMax = 1_000
/** All exports share one queue, regardless of their project. */
const everyProject = 0

/** @returns a function that creates the two runners for an export, which its `signal` ends. */
export function createExportQueries(
  clients: Pick<ClickHouseClients, 'read'>,
  { retryPausesMs = usualPausesMs }: Partial<ExportQueriesOptions> = {},
): (signal: AbortSignal) => ExportQueryRunners {
  const queue = createQueryQueue({ runningMax: 1, waitingMax })
  return signal => {
    const askOnce: RunExportQuery = query => queue.run(everyProject, signal, () => clients.read(query, signal))
    const askPatiently: RunExportQuery = async query => {
      for (const pauseMs of retryPausesMs) {
        try {
          return await askOnce(query)
        } catch (error) {
          if (!(error instanceof PortError) || error.code !== 'unavailable') throw error
          await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
        }
      }
      return askOnce(query)
    }
    return { once: askOnce, patiently: askPatiently }
  }
}

/** SQL of an event's approximate bytes. For its texts, the engine reads only their sizes. */
export const eventBytesSql = 'length(properties) + length(person_properties) + length(elements_chain) + 150'

export const exportedColumns = `${viewColumns}, toString(${tieBreak})`

/** @param json a row of `exportedColumns`. */
export function decodeExportedEvent(json: unknown): ExportedEvent {
  const row = json as [...SelectedEventRow, tie: string]
  const event = toEventView(row)
  return { event, cursor: { timestampMs: event.timestampMs, uuid: event.uuid, tieBreak: row[16] } }
}

/** SQL for `findPageEnd`: whether more rows may follow after the place that it finds. */
export const hasRowsLeft = 'number < row_count OR row_count = {rows:UInt32}'

/**
 * Finds the last place of a page; returns an empty list when there are no rows. The params `rows` and `bytes` are the most
 * rows and bytes of the page, copies included. A single row may have more bytes than a page.
 */
export function findPageEnd<Place>(
  ask: RunExportQuery,
  { place, columns, order, conditions }: Readonly<Record<'place' | 'columns' | 'order' | 'conditions', string>>,
  params: Readonly<Record<string, unknown>>,
): Promise<Place[]> {
  return ask(async (client, signal) => {
    return readRows<Place>(client, signal, {
      query: `SELECT ${place} FROM (
          SELECT *, row_number() OVER in_order AS number, sum(bytes) OVER in_order AS bytes_so_far, count() OVER () AS row_count
          FROM (
            SELECT ${columns}, ${eventBytesSql} AS bytes FROM events
            WHERE ${conditions} ORDER BY ${order} LIMIT {rows:UInt32}
          )
          WINDOW in_order AS (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        ) WHERE number = 1 OR bytes_so_far <= {bytes:UInt64} ORDER BY number DESC LIMIT 1`,
      query_params: params,
    })
  })
}
