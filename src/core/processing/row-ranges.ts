// Describes the contents of an event store as ranges of the block numbers that it assigns to rows, and finds which rows are
// missing. Ranges only grow, because merged rows keep their numbers. A data part that was removed, set aside as broken, or
// is missing in an older copy leaves a gap, however many rows were replaced since.

/** Rows of one partition of a table that were stored with the block numbers `from` to `to`, both included. */
export interface RowRange {
  readonly table: string
  /** The table's id, which is different each time the table is created. */
  readonly tableId: string
  readonly partition: string
  readonly from: number
  readonly to: number
  /**
   * Oldest time in the column that partitions the table (when events were accepted), epoch ms; null without such a
   * column.
   */
  readonly oldestMs: number | null
  readonly newestMs: number | null
}

/**
 * A worker's note in the state store about the contents of the event store, made when the event store had everything before
 * `positions`.
 */
export interface EventStoreMark {
  /** The id of this copy of the event store; every copy has a different id. */
  readonly id: string
  /** The offset in each log stream. */
  readonly positions: Readonly<Record<string, number>>
  readonly held: readonly RowRange[]
  /** Ranges that were lost and could not be restored; listed until they are back or an operator accepts the loss. */
  readonly missing: readonly RowRange[]
}

/** Sorts ranges and joins those that touch. */
export function mergeRowRanges(ranges: readonly RowRange[]): RowRange[] {
  const joined: RowRange[] = []
  for (const range of [...ranges].sort(comparePlaces)) {
    const last = joined.at(-1)
    if (last !== undefined && isSamePlace(last, range) && range.from <= last.to + 1)
      joined[joined.length - 1] = {
        ...last,
        to: Math.max(last.to, range.to),
        oldestMs: minPresent(last.oldestMs, range.oldestMs),
        newestMs: maxPresent(last.newestMs, range.newestMs),
      }
    else joined.push(range)
  }
  return joined
}

/**
 * The parts of `before` that `now` does not cover. The times of a missing range are narrowed by the ranges on both sides of
 * it, since rows are stored roughly in the order of their times.
 */
export function findMissingRanges(before: readonly RowRange[], now: readonly RowRange[]): RowRange[] {
  const covers = mergeRowRanges(now)
  return mergeRowRanges(before).flatMap(range => {
    const holes: RowRange[] = []
    let from = range.from
    let oldestMs = range.oldestMs
    for (const cover of covers) {
      if (!isSamePlace(cover, range) || cover.to < from || cover.from > range.to) continue
      if (cover.from > from)
        holes.push({
          ...range,
          from,
          to: cover.from - 1,
          ...mergeTimeSpans(oldestMs, cover.oldestMs ?? range.newestMs),
        })
      from = cover.to + 1
      oldestMs = cover.newestMs ?? oldestMs
    }
    if (from <= range.to) holes.push({ ...range, from, ...mergeTimeSpans(oldestMs, range.newestMs) })
    return holes
  })
}

function mergeTimeSpans(a: number | null, b: number | null): Pick<RowRange, 'oldestMs' | 'newestMs'> {
  return { oldestMs: minPresent(a, b), newestMs: maxPresent(a, b) }
}

function isSamePlace(a: RowRange, b: RowRange): boolean {
  return a.table === b.table && a.tableId === b.tableId && a.partition === b.partition
}

function comparePlaces(a: RowRange, b: RowRange): number {
  return (
    compare(a.table, b.table) || compare(a.tableId, b.tableId) || compare(a.partition, b.partition) || a.from - b.from
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function minPresent(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

function maxPresent(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}
