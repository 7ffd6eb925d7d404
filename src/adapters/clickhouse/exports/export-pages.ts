// The columns of an export's page, and where the page ends.

import type { ExportedEvent } from '#ports/events/event-queries.ts'
import { readRows } from '../connection/clickhouse-clients.ts'
import { tieBreak } from '../queries/event-filter.ts'
import { type EventRow, toEventView, viewColumns } from '../queries/event-rows.ts'
import type { Ask } from './export-queries.ts'

/** SQL of an event's approximate bytes. For its texts, the engine reads only their sizes. */
export const bytesOfEvent = 'length(properties) + length(person_properties) + length(elements_chain) + 150'

export const exportedColumns = `${viewColumns}, toString(${tieBreak})`

/** @param json a row of `exportedColumns`. */
export function decodeExportedEvent(json: unknown): ExportedEvent {
  const row = json as [...EventRow, tie: string]
  const event = toEventView(row)
  return { event, cursor: { timestampMs: event.timestampMs, uuid: event.uuid, tieBreak: row[16] } }
}

/** SQL: whether rows are left after a place. */
export const hasRowsLeft = 'number < row_count OR row_count = {rows:UInt32}'

/**
 * The last place of a page; an empty list without rows. The params `rows` and `bytes` bound the page. Copies count as
 * well. A single row may have more bytes than a page.
 */
export function findPageEnd<Place>(
  ask: Ask,
  { place, columns, order, conditions }: Readonly<Record<'place' | 'columns' | 'order' | 'conditions', string>>,
  params: Readonly<Record<string, unknown>>,
): Promise<Place[]> {
  return ask(async (client, signal) => {
    return readRows<Place>(client, signal, {
      query: `SELECT ${place} FROM (
          SELECT *, row_number() OVER in_order AS number, sum(bytes) OVER in_order AS bytes_so_far, count() OVER () AS row_count
          FROM (
            SELECT ${columns}, ${bytesOfEvent} AS bytes FROM events
            WHERE ${conditions} ORDER BY ${order} LIMIT {rows:UInt32}
          )
          WINDOW in_order AS (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
        ) WHERE number = 1 OR bytes_so_far <= {bytes:UInt64} ORDER BY number DESC LIMIT 1`,
      query_params: params,
    })
  })
}
