// Runs the queries of exports: one at a time per process, so that however many exports run, other queries keep their
// capacity in the engine; and retries while the engine restarts.

import { setTimeout as sleep } from 'node:timers/promises'
import { createQueryQueue } from '#adapters/clickhouse/connection/query-queue.ts'
import { PortError } from '#ports/port-error.ts'
import type { ClickHouseClient, ClickHouseClients } from '../connection/clickhouse-clients.ts'

/** Runs one query when it is its turn among exports, under the query limit. */
export type Ask = <T>(query: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>) => Promise<T>

export interface ExportAsk {
  /** Fails at once while the store is unavailable. */
  readonly once: Ask
  /** Retries while the store is unavailable. */
  readonly patiently: Ask
}

export interface ExportQueriesOptions {
  /** How long to wait before each further try. */
  readonly retryPausesMs: readonly number[]
}

/** Together longer than the engine takes to come back after a crash. */
const usualPausesMs = [250, 1_000, 2_000, 4_000]
/** More than the most exports that may run, each of which has one query at a time. */
const waitingMax = 1_000
/** All exports share one queue, whatever their project. */
const everyProject = 0

/** @returns the two ways to query, for an export that `signal` ends. */
export function createExportQueries(
  clients: Pick<ClickHouseClients, 'read'>,
  { retryPausesMs = usualPausesMs }: Partial<ExportQueriesOptions> = {},
): (signal: AbortSignal) => ExportAsk {
  const queue = createQueryQueue({ runningMax: 1, waitingMax })
  return signal => {
    const askOnce: Ask = query => queue.run(everyProject, signal, () => clients.read(query, signal))
    const askPatiently: Ask = async query => {
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
