// Exports every event that matches a filter: days in the order of the list, and each day's events one slice of time after
// another, or in the order of the sort key if the day has too many events. Each query completes under the usual limits; no
// query stays open while the reader is slow.

import { isUuid } from '#core/events/uuid.ts'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import type {
  EventCursor,
  EventExport,
  EventExportQuery,
  EventQuery,
  ExportedEvent,
} from '#ports/events/event-queries.ts'
import { PortError } from '#ports/port-error.ts'
import { readRows } from '../connection/clickhouse-clients.ts'
import { timeParamSql } from '../parameters/time-param.ts'
import { eventsWithPersonsSql } from '../queries/current-persons.ts'
import { buildEventFilter, type EventFilter, tieBreak } from '../queries/event-filter.ts'
import { storedColumns } from '../queries/event-rows.ts'
import { bufferAnswerRows } from './buffered-rows.ts'
import { compareCursors } from './compare-cursors.ts'
import { readDayInKeyOrder } from './day-in-key-order.ts'
import {
  decodeExportedEvent,
  type ExportQueryRunners,
  eventBytesSql,
  exportedColumns,
  findPageEnd,
  hasRowsLeft,
  type RunExportQuery,
} from './export-queries.ts'
import {
  type Bucket,
  computeBucketWidthMs,
  type ExportWindow,
  groupDaysIntoWindows,
  groupIntoSlices,
  type SliceLimits,
} from './export-slices.ts'
import { buildRangeCondition, findKeyRanges, type KeyRange } from './key-ranges.ts'

export interface ExportLimits extends SliceLimits {
  /** Approximate number of rows that one query scans. */
  readonly rangeRowsMax: number
  /**
   * The most slices of a window. Each scans all days of its window; days that need more are read in the order of the sort
   * key.
   */
  readonly sliceCountMax: number
}

export const usualExportLimits: ExportLimits = {
  windowRowsMin: 300_000,
  dayRowsMax: 300_000,
  sliceCountMax: 128,
  sliceRowsMax: 20_000,
  sliceBytesMax: 8 * 1024 * 1024,
  rangeRowsMax: 1_000_000,
}

/** The most ranges into which the rows of a day are divided when queries of that day fail because of their size. */
const rangeCountMax = 512
/** The most days that one query returns: more than the four centuries of which a store accepts events. */
const dayCountMax = 50_000

/** @throws PortError; reading the returned batches may throw it, too. */
export async function openEventExport(
  { once, patiently }: ExportQueryRunners,
  query: EventExportQuery,
  limits: ExportLimits,
): Promise<EventExport> {
  const { after } = query
  const place = after?.key ?? null
  const filter = buildEventFilter(toListQuery(query))
  if (filter === null || (place !== null && !isUuid(after!.uuid))) return { eventCountMax: 0, batches: exportNothing() }
  const keyDay = place === null ? null : utcDay(after!.timestampMs)
  if (keyDay !== null) {
    filter.keyConditions.push(`toDate32(timestamp) ${query.descending ? '<' : '>'}= {from_day:Date32}`)
    filter.conditions.push(filter.keyConditions.at(-1)!)
    filter.params.from_day = keyDay
  }
  const days = await listDaysWithRows(once, filter, query.descending)
  const windows = groupDaysIntoWindows(days, limits, keyDay)
  const base = place?.base ?? (place === null ? (after ?? null) : null)
  const readInKeyOrder = (day: string) => {
    const above = day === keyDay ? { event: place!.event, distinctId: place!.distinctId, uuid: after!.uuid } : null
    return readDayInKeyOrder(patiently, { filter, day, above, base }, limits)
  }
  return {
    eventCountMax: windows.reduce((sum, window) => sum + window.rowCount, 0),
    batches: exportWindows(
      windows,
      readInKeyOrder,
      window => new WindowReader(patiently, query, filter, window, limits),
    ),
  }
}

/**
 * Adds the place after which the export continues to the list's conditions, if it is a place in time. `readDayInKeyOrder`
 * applies a place in the sort key.
 */
function toListQuery({ after, ...query }: EventExportQuery): Omit<EventQuery, 'limit'> {
  const inTime = after?.key === undefined ? after : after.key.base
  return inTime === undefined || inTime === null ? query : { ...query, after: inTime }
}

async function* exportNothing(): AsyncGenerator<never> {}

async function* exportWindows(
  windows: readonly ExportWindow[],
  inKeyOrder: (day: string) => AsyncGenerator<Iterable<ExportedEvent>>,
  readerOf: (window: ExportWindow) => WindowReader,
): AsyncGenerator<Iterable<ExportedEvent>> {
  for (const window of windows) {
    const reader = readerOf(window)
    const slices = window.isBusy ? null : await reader.slices()
    if (slices === null) for (const day of window.days) yield* inKeyOrder(day)
    else for (const slice of slices) yield* reader.read(slice)
  }
}

/** Reads only the sort key, which suffices for the days and their row counts, copies included. */
async function listDaysWithRows(
  ask: RunExportQuery,
  filter: EventFilter,
  descending: boolean,
): Promise<Array<[string, number]>> {
  const days: Array<[string, number]> = []
  for (;;) {
    const last = days.at(-1)?.[0]
    const beyond = last === undefined ? 'true' : `toDate32(timestamp) ${descending ? '<' : '>'} {last_day:Date32}`
    const rows = await ask(async (client, signal) => {
      return readRows<[day: string, rowCount: number | string]>(client, signal, {
        query: `SELECT toString(toDate32(timestamp)) AS day, count() FROM events
          WHERE ${filter.keyConditions.join(' AND ')} AND ${beyond}
          GROUP BY day ORDER BY day ${sortDirection(descending)} LIMIT {days:UInt32}`,
        query_params: { ...filter.params, ...(last !== undefined && { last_day: last }), days: dayCountMax },
      })
    })
    for (const [day, rowCount] of rows) days.push([day, Number(rowCount)])
    if (rows.length < dayCountMax) return days
  }
}

/**
 * A page of a slice. It begins after `after` (null: at the slice's start) and ends with `upTo` (null: at the slice's end).
 */
interface Page {
  readonly after: EventCursor | null
  readonly upTo: EventCursor | null
}

class WindowReader {
  readonly #ask: RunExportQuery
  readonly #query: EventExportQuery
  readonly #filter: EventFilter
  readonly #window: ExportWindow
  readonly #limits: ExportLimits
  readonly #span: { readonly fromMs: number; readonly toMs: number }
  /** The key ranges that are queried one after another; `slices` sets them before any page is read. */
  #ranges: readonly KeyRange[] = []

  constructor(
    ask: RunExportQuery,
    query: EventExportQuery,
    filter: EventFilter,
    window: ExportWindow,
    limits: ExportLimits,
  ) {
    this.#ask = ask
    this.#query = query
    this.#filter = filter
    this.#window = window
    this.#limits = limits
    const [firstDay, lastDay] = [window.days[0]!, window.days.at(-1)!].sort()
    this.#span = { fromMs: startOfDay(firstDay!), toMs: startOfDay(lastDay!) + dayMs }
  }

  /** @returns null when reading the window would take too many slices. */
  async slices(): Promise<readonly Bucket[] | null> {
    const { rowCount } = this.#window
    await this.#divide(Math.ceil(rowCount / this.#limits.rangeRowsMax))
    const { fromMs, toMs } = this.#span
    const width = computeBucketWidthMs(toMs - fromMs, rowCount, this.#limits)
    const buckets = new Map<number, { rowCount: number; bytes: number }>()
    const found = await this.#overRanges(range => this.#histogram(range, width))
    for (const [bucket, rows, bytes] of found.flat()) {
      const sum = buckets.get(bucket) ?? { rowCount: 0, bytes: 0 }
      buckets.set(bucket, { rowCount: sum.rowCount + rows, bytes: sum.bytes + bytes })
    }
    const { descending } = this.#query
    const inOrder = [...buckets]
      .sort(([a], [b]) => (descending ? b - a : a - b))
      .map(([bucket, sum]) => ({
        ...sum,
        fromMs: fromMs + bucket * width,
        toMs: Math.min(toMs, fromMs + (bucket + 1) * width),
      }))
    const slices = groupIntoSlices(inOrder, this.#span, descending, this.#limits)
    const { sliceRowsMax, sliceBytesMax, sliceCountMax } = this.#limits
    // The number of pages in which a slice is read; more than one if its events, which may all have the same time, exceed a
    // page.
    const countPages = ({ rowCount, bytes }: Bucket) =>
      Math.max(1, Math.ceil(rowCount / sliceRowsMax), Math.ceil(bytes / sliceBytesMax))
    return slices.reduce((sum, slice) => sum + countPages(slice), 0) > sliceCountMax ? null : slices
  }

  async *read(slice: Bucket): AsyncGenerator<Iterable<ExportedEvent>> {
    const { sliceRowsMax, sliceBytesMax } = this.#limits
    // Pages are needed when a single bucket exceeds the limits, such as an import whose events all have the same time.
    let inPages = slice.bytes > sliceBytesMax || slice.rowCount > sliceRowsMax
    let after: EventCursor | null = null
    for (;;) {
      const upTo: EventCursor | null = inPages ? await this.#endOfPage(slice, after) : null
      let batches: Iterable<Iterable<ExportedEvent>>
      try {
        batches = await this.#readPage(slice, { after, upTo }, inPages)
      } catch (error) {
        // Too many rows arrived since the slice was measured, so it is read in pages.
        if (inPages || !isFull(error)) throw error
        inPages = true
        continue
      }
      yield* batches
      if (upTo === null) return
      after = upTo
    }
  }

  async #divide(count: number): Promise<void> {
    const { conditions, params } = this.#inDays(this.#filter.keyConditions, this.#span)
    const { rowCount } = this.#window
    this.#ranges = await findKeyRanges(this.#ask, { conditions: conditions.join(' AND '), params, rowCount, count })
  }

  /** Queries one range after another, and divides the ranges further when one is too much for a query. */
  async #overRanges<T>(
    ask: (range: KeyRange, rangeCount: number) => Promise<T>,
    mayDivide = isLimitError,
  ): Promise<T[]> {
    for (;;) {
      try {
        const answers: T[] = []
        for (const range of this.#ranges) answers.push(await ask(range, this.#ranges.length))
        return answers
      } catch (error) {
        const count = this.#ranges.length
        if (!mayDivide(error) || count >= rangeCountMax) throw error
        await this.#divide(4 * count)
        if (this.#ranges.length <= count) throw error // there are no keys to divide them by
      }
    }
  }

  async #histogram(range: KeyRange, width: number): Promise<Array<[bucket: number, rows: number, bytes: number]>> {
    const { conditions, params } = this.#inSlice(this.#span, range)
    // The winning copy is itself one of the rows that pass the filters, so measuring the rows of all copies suffices.
    const columns = `timestamp, distinct_id, ${eventBytesSql} AS bytes`
    const where = `WHERE ${conditions}`
    const { personId } = this.#filter
    const rows =
      personId === undefined
        ? `(SELECT ${columns} FROM events ${where})`
        : `(${eventsWithPersonsSql(columns, where, `SELECT distinct_id FROM events ${where}`)}) WHERE person = {person:UUID}`
    return this.#ask(async (client, signal) => {
      const buckets = await readRows<[number | string, number | string, number | string]>(client, signal, {
        query: `SELECT intDiv(toUnixTimestamp64Milli(timestamp) - {start:Int64}, {width:Int64}) AS bucket, count(), sum(bytes)
          FROM ${rows} GROUP BY bucket`,
        query_params: { ...params, ...this.#person(), start: this.#span.fromMs, width },
      })
      return buckets.map(([bucket, rowCount, bytes]) => [Number(bucket), Number(rowCount), Number(bytes)])
    })
  }

  /** The last place of the page that begins after `after`; null when all remaining rows of the slice fit on the page. */
  async #endOfPage(slice: Bucket, after: EventCursor | null): Promise<EventCursor | null> {
    const { descending } = this.#query
    const order = sortDirection(descending)
    const ends = await this.#overRanges(async (range, rangeCount) => {
      const { conditions, params } = this.#inSlice(slice, range, { after, upTo: null })
      // The page ends at the earliest place at which a range reaches its share of the limits.
      const rows = Math.max(1, Math.floor(this.#limits.sliceRowsMax / rangeCount))
      const bytes = Math.floor(this.#limits.sliceBytesMax / rangeCount)
      const sql = {
        place: `toUnixTimestamp64Milli(timestamp), toString(uuid), toString(tie), ${hasRowsLeft}`,
        columns: `timestamp, uuid, ${tieBreak} AS tie`,
        order: `timestamp ${order}, uuid ${order}, tie ${order}`,
        conditions,
      }
      type End = [timestampMs: number | string, uuid: string, tie: string, isMore: 0 | 1]
      const [end] = await findPageEnd<End>(this.#ask, sql, { ...params, rows, bytes })
      return end?.[3] === 1 ? [{ timestampMs: Number(end[0]), uuid: end[1], tieBreak: end[2] }] : []
    })
    return ends.flat().sort((a, b) => compareCursors(a, b, descending))[0] ?? null
  }

  /** @throws PortError `full` when rows that were not measured before (`isMeasured` false) exceed a page. */
  async #readPage(slice: Bucket, page: Page, isMeasured: boolean): Promise<Iterable<Iterable<ExportedEvent>>> {
    const { descending } = this.#query
    const order = sortDirection(descending)
    const { sliceRowsMax } = this.#limits
    const { personId } = this.#filter
    const found = await this.#overRanges(
      range => {
        const { conditions, params } = this.#inSlice(slice, range, page)
        // Reads all copies of the matching events, among which FINAL has to choose, and nothing of other events.
        const where = `PREWHERE uuid IN (SELECT uuid FROM events WHERE ${conditions}) WHERE ${conditions}`
        const events = eventsWithPersonsSql(storedColumns, where, `SELECT distinct_id FROM events WHERE ${conditions}`)
        const withPerson = personId === undefined ? '' : 'WHERE person = {person:UUID}'
        return this.#ask(async (client, signal) => {
          const answer = await client.exec({
            query: `SELECT ${exportedColumns} FROM (${events}) ${withPerson}
              ORDER BY timestamp ${order}, uuid ${order}, ${tieBreak} ${order} ${isMeasured ? '' : 'LIMIT {rows:UInt32}'}
              FORMAT JSONCompactEachRow`,
            query_params: { ...params, ...this.#person(), rows: sliceRowsMax + 1 },
            abort_signal: signal,
          })
          return bufferAnswerRows(answer, decodeExportedEvent)
        })
      },
      isMeasured ? isLimitError : isTimeout,
    )
    if (!isMeasured && found.reduce((sum, { rowCount }) => sum + rowCount, 0) > sliceRowsMax)
      throw new PortError('event-store', 'full', new Error('a slice has more rows than a page'))
    if (found.length === 1) return found[0]!.batches()
    // The ranges follow the sort key, but the export is in the order of time, so the rows of all ranges are sorted
    // together.
    const events = found.flatMap(held => Array.from(held.batches(), batch => [...batch]).flat())
    return events.length === 0 ? [] : [events.sort((a, b) => compareCursors(a.cursor, b.cursor, descending))]
  }

  #person(): Record<string, string> {
    const { personId } = this.#filter
    return personId === undefined ? {} : { person: personId }
  }

  #inSlice(
    slice: { fromMs: number; toMs: number },
    range: KeyRange,
    { after, upTo }: Page = { after: null, upTo: null },
  ) {
    const { conditions, params } = this.#inDays(this.#filter.conditions, slice)
    const inRange = buildRangeCondition(range)
    conditions.push(
      inRange.condition,
      `timestamp >= ${timeParamSql('slice_from')} AND timestamp < ${timeParamSql('slice_to')}`,
    )
    const { descending } = this.#query
    Object.assign(params, inRange.params, { slice_from: slice.fromMs, slice_to: slice.toMs })
    const addBound = (name: string, operator: string, place: EventCursor) => {
      conditions.push(
        `(timestamp, uuid, ${tieBreak}) ${operator} (${timeParamSql(`${name}_at`)}, {${name}_uuid:UUID}, {${name}_tie:UInt64})`,
      )
      Object.assign(params, {
        [`${name}_at`]: place.timestampMs,
        [`${name}_uuid`]: place.uuid,
        [`${name}_tie`]: place.tieBreak,
      })
    }
    if (after !== null) addBound('page_after', descending ? '<' : '>', after)
    if (upTo !== null) addBound('page_end', descending ? '>=' : '<=', upTo)
    return { conditions: conditions.join(' AND '), params }
  }

  #inDays(conditions: readonly string[], { fromMs, toMs }: { fromMs: number; toMs: number }) {
    return {
      conditions: [...conditions, 'toDate32(timestamp) BETWEEN {first_day:Date32} AND {last_day:Date32}'],
      params: { ...this.#filter.params, first_day: utcDay(fromMs), last_day: utcDay(toMs - 1) } as Record<
        string,
        unknown
      >,
    }
  }
}

function startOfDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`)
}

function sortDirection(descending: boolean): 'ASC' | 'DESC' {
  return descending ? 'DESC' : 'ASC'
}

function isTimeout(error: unknown): boolean {
  return error instanceof PortError && error.code === 'timeout'
}

function isFull(error: unknown): boolean {
  return error instanceof PortError && error.code === 'full'
}

function isLimitError(error: unknown): boolean {
  return isTimeout(error) || isFull(error)
}
