// What an event store holds, as ranges of the numbers that it gives to blocks of rows, and what is no longer there. A range
// only ever grows, because merged rows keep their numbers. A part that was removed, was set aside as broken, or is missing
// from an older copy leaves a range uncovered, however many rows were replaced meanwhile.

/** Rows of one partition of a table that were stored with the block numbers `from` to `to`, both included. */
export interface HeldRange {
  readonly table: string
  /** New whenever the table is created. */
  readonly tableId: string
  readonly partition: string
  readonly from: number
  readonly to: number
  /** Oldest time by which the table is partitioned (when events were accepted), epoch ms; null where it has none. */
  readonly oldestMs: number | null
  readonly newestMs: number | null
}

/** What a worker leaves in the state about the event store, at a moment when it held everything before `positions`. */
export interface EventStoreMark {
  /** The event store has the same id; another copy of the store has another one. */
  readonly id: string
  /** Offset of each log lane. */
  readonly positions: Readonly<Record<string, number>>
  readonly held: readonly HeldRange[]
  /** What was lost and could not be brought back, until it is there again or an operator accepts the loss. */
  readonly missing: readonly HeldRange[]
}

/** Orders ranges, and joins those that touch. */
export function joinRanges(ranges: readonly HeldRange[]): HeldRange[] {
  const joined: HeldRange[] = []
  for (const range of [...ranges].sort(byPlace)) {
    const last = joined.at(-1)
    if (last !== undefined && isSamePlace(last, range) && range.from <= last.to + 1)
      joined[joined.length - 1] = {
        ...last,
        to: Math.max(last.to, range.to),
        oldestMs: least(last.oldestMs, range.oldestMs),
        newestMs: most(last.newestMs, range.newestMs),
      }
    else joined.push(range)
  }
  return joined
}

/**
 * What of `before` is not in `now`. The times of a hole are narrowed by what lies on both sides of it, since rows come in
 * about the order of their time.
 */
export function findMissing(before: readonly HeldRange[], now: readonly HeldRange[]): HeldRange[] {
  const covers = joinRanges(now)
  return joinRanges(before).flatMap(range => {
    const holes: HeldRange[] = []
    let from = range.from
    let oldestMs = range.oldestMs
    for (const cover of covers) {
      if (!isSamePlace(cover, range) || cover.to < from || cover.from > range.to) continue
      if (cover.from > from)
        holes.push({ ...range, from, to: cover.from - 1, ...span(oldestMs, cover.oldestMs ?? range.newestMs) })
      from = cover.to + 1
      oldestMs = cover.newestMs ?? oldestMs
    }
    if (from <= range.to) holes.push({ ...range, from, ...span(oldestMs, range.newestMs) })
    return holes
  })
}

function span(a: number | null, b: number | null): Pick<HeldRange, 'oldestMs' | 'newestMs'> {
  return { oldestMs: least(a, b), newestMs: most(a, b) }
}

function isSamePlace(a: HeldRange, b: HeldRange): boolean {
  return a.table === b.table && a.tableId === b.tableId && a.partition === b.partition
}

function byPlace(a: HeldRange, b: HeldRange): number {
  return (
    compare(a.table, b.table) || compare(a.tableId, b.tableId) || compare(a.partition, b.partition) || a.from - b.from
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function least(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

function most(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b)
}
