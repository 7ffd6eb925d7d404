// The engine buffers the answer of a read until the answer is complete. Without disk space for the buffer, it truncates the
// answer, even to nothing, and still sends status 200. Only its row count reveals this: if a truncated answer were taken as
// complete, undoing an import would remove persons that live events use.

import type { ClickHouseClient, ResponseHeaders } from '@clickhouse/client'
import { PortError } from '#ports/port-error.ts'

/** @returns the row count that the server reports for the answer; null when it reports none. */
export function readRowCount(headers: ResponseHeaders): number | null {
  const summary = headers['x-clickhouse-summary']
  if (typeof summary !== 'string') return null
  const { result_rows: rows } = JSON.parse(summary) as { readonly result_rows?: string | number }
  return rows === undefined ? null : Number(rows)
}

/** @throws PortError `unavailable` for an answer with fewer rows than the server reported. */
export function checkAnswerIsComplete(headers: ResponseHeaders, rowCount: number): void {
  const rows = readRowCount(headers)
  if (rows !== null && rows !== rowCount)
    throw createIncompleteAnswerError(`a response of ${rows} rows contained ${rowCount}`)
}

export function createIncompleteAnswerError(what: string): PortError {
  const cause = new Error(`${what}: the event store cuts answers off when its disk is full`)
  return new PortError('event-store', 'unavailable', cause)
}

/**
 * Wraps the client so that it checks each answer that is read as a whole (`json`); callers that read a stream call
 * `checkAnswerIsComplete` at its end. A query's signal also ends an answer that has begun; without the wrapper, the client
 * would wait for its timeout.
 */
export function addAnswerChecks(client: ClickHouseClient): ClickHouseClient {
  const query = client.query.bind(client)
  const exec = client.exec.bind(client)
  client.exec = (async (params: Parameters<typeof exec>[0]) => {
    const result = await exec(params)
    params.abort_signal?.addEventListener('abort', () => result.stream.destroy(new Error('the query was canceled')), {
      once: true,
    })
    return result
  }) as ClickHouseClient['exec']
  client.query = (async (params: Parameters<typeof query>[0]) => {
    const result = await query(params)
    params.abort_signal?.addEventListener('abort', () => result.close(), { once: true })
    const json = result.json.bind(result)
    result.json = (async () => {
      const rows = await json().catch((error: unknown) => {
        throw error instanceof SyntaxError ? createIncompleteAnswerError('a response ended within a row') : error
      })
      if (Array.isArray(rows)) checkAnswerIsComplete(result.response_headers, rows.length)
      return rows
    }) as typeof result.json
    return result
  }) as ClickHouseClient['query']
  return client
}
