// Reads a busy day in the order of the sort key, in which its rows are stored: each page is a range of the key, so every
// row is read a fixed number of times, regardless of how many rows there are and of their times.

import type { EventCursor, ExportedEvent } from '#ports/events/event-queries.ts'
import { PortError } from '#ports/port-error.ts'
import { eventsWithPersonsSql } from '../queries/current-persons.ts'
import type { EventFilter } from '../queries/event-filter.ts'
import { storedColumns } from '../queries/event-rows.ts'
import { type BufferedRows, bufferAnswerRows } from './buffered-rows.ts'
import { decodeExportedEvent, exportedColumns, findPageEnd, type RunExportQuery } from './export-queries.ts'
import { buildRangeCondition, type KeyPlace } from './key-ranges.ts'

/** The most rows and bytes that the query of one page reads, including copies and rows that finer filters exclude. */
export interface PageLimits {
  readonly sliceRowsMax: number
  readonly sliceBytesMax: number
}

export interface DayToRead {
  readonly filter: EventFilter
  /** `2026-01-31` */
  readonly day: string
  /** The place in the sort key after which to begin; null to begin at the start of the day. */
  readonly above: KeyPlace | null
  /**
   * Where a continued export begins: after the event at this time. Null if the export begins at its start. The filter
   * already contains this condition.
   */
  readonly base: EventCursor | null
}

/**
 * Yields a day's pages. An event that is sent again keeps its place in the sort key, so none is missed or repeated. @throws
 * PortError
 */
export async function* readDayInKeyOrder(
  ask: RunExportQuery,
  { filter, day, above, base }: DayToRead,
  limits: PageLimits,
): AsyncGenerator<Iterable<ExportedEvent>> {
  const params = { ...filter.params, key_day: day }
  const ofDay = 'toDate32(timestamp) = {key_day:Date32}'
  let share = 1
  for (let last = above; ; ) {
    const rowsMax = Math.max(1, Math.floor(limits.sliceRowsMax / share))
    try {
      const upTo = await findPageEndKey(last, rowsMax, Math.floor(limits.sliceBytesMax / share))
      if (upTo === null) return
      const page = await readPage(last, upTo)
      yield* page.batches()
      last = upTo
      share = 1
    } catch (error) {
      // More rows have arrived since the page was measured, or the rows take more memory than was measured.
      if (!isLimitError(error) || rowsMax === 1) throw error
      share *= 4
    }
  }

  /** The last key of the next page; null when no row is left. */
  async function findPageEndKey(last: KeyPlace | null, rowsMax: number, bytesMax: number): Promise<KeyPlace | null> {
    const range = buildRangeCondition({ above: last, upTo: null })
    const sql = {
      place: 'event, distinct_id, toString(uuid)',
      columns: 'project_id, toDate32(timestamp) AS day, event, distinct_id, uuid',
      // Orders by the whole sort key, which lets the engine stop as soon as it has the requested number of rows.
      order: 'project_id, day, event, distinct_id, uuid',
      conditions: [...filter.keyConditions, ofDay, range.condition].join(' AND '),
    }
    const values = { ...params, ...range.params, rows: rowsMax, bytes: bytesMax }
    const [row] = await findPageEnd<[event: string, distinctId: string, uuid: string]>(ask, sql, values)
    return row === undefined ? null : { event: row[0], distinctId: row[1], uuid: row[2] }
  }

  function toExportedEvent(json: unknown): ExportedEvent {
    const { event, cursor } = decodeExportedEvent(json)
    return { event, cursor: { ...cursor, key: { event: event.event, distinctId: event.distinctId, base } } }
  }

  async function readPage(last: KeyPlace | null, upTo: KeyPlace): Promise<BufferedRows<ExportedEvent>> {
    const range = buildRangeCondition({ above: last, upTo })
    const conditions = [...filter.conditions, ofDay, range.condition].join(' AND ')
    const inRange = [...filter.keyConditions, ofDay, range.condition].join(' AND ')
    const events = eventsWithPersonsSql(
      storedColumns,
      `WHERE ${conditions}`,
      `SELECT distinct_id FROM events WHERE ${inRange}`,
    )
    const { personId } = filter
    return ask(async (client, signal) => {
      const answer = await client.exec({
        query: `SELECT ${exportedColumns} FROM (${events})
          ${personId === undefined ? '' : 'WHERE person = {person:UUID}'} ORDER BY event, distinct_id, uuid
          FORMAT JSONCompactEachRow`,
        query_params: { ...params, ...range.params, ...(personId !== undefined && { person: personId }) },
        abort_signal: signal,
      })
      return bufferAnswerRows(answer, toExportedEvent)
    })
  }
}

function isLimitError(error: unknown): boolean {
  return error instanceof PortError && (error.code === 'timeout' || error.code === 'full')
}
