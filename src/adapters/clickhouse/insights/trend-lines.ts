// Combines the figures of single buckets and breakdown values into the lines of a trend.

import type { TrendMath } from '#core/insights/trends-query.ts'
import type { BreakdownValue, TrendCountQuery, TrendLine } from '#ports/events/insight-queries.ts'

/** The figure of one breakdown value in one bucket. */
export interface TrendCell {
  readonly bucket: number
  readonly value: BreakdownValue
  /** The count or aggregate of this cell; for an average, the sum, which is divided by `weight` when it is shown. */
  readonly figure: number
  readonly weight: number
}

/**
 * Ranks values by the sum of the figures that their line shows, as PostHog does.
 * @param cells one for each bucket and value.
 */
export function rankBreakdownValues(
  { math }: TrendCountQuery,
  cells: readonly TrendCell[],
  limit: number,
): BreakdownValue[] {
  const totals = new Map<string, { value: BreakdownValue; total: number }>()
  // Adds in the order of the buckets, so that values with equal figures get exactly equal sums.
  for (const { value, figure, weight } of cells.toSorted((a, b) => a.bucket - b.bucket)) {
    if (value.every(text => text === '')) continue
    const key = JSON.stringify(value)
    const shown = weight === 0 ? 0 : isAverageMath(math) ? figure / weight : figure
    totals.set(key, { value, total: (totals.get(key)?.total ?? 0) + shown })
  }
  const ranked = [...totals.values()].sort((a, b) => b.total - a.total || compareBytes(a.value, b.value))
  return ranked.slice(0, limit).map(({ value }) => value)
}

function compareBytes(a: BreakdownValue, b: BreakdownValue): number {
  for (let index = 0; index < a.length; index++) {
    const order = Buffer.compare(Buffer.from(a[index]!), Buffer.from(b[index]!))
    if (order !== 0) return order
  }
  return 0
}

/**
 * Builds the lines in the order of `ranked`, then the line of events without a value (unless it is ranked), then one line
 * `other` for all remaining values.
 */
export function buildTrendLines(
  query: TrendCountQuery,
  cells: readonly TrendCell[],
  ranked: readonly BreakdownValue[],
): TrendLine[] {
  const count = query.buckets.days.length
  if (query.breakdown === null) return [{ value: null, data: mergeCells(query.math, cells, count) }]
  const cellsOf = new Map<string, TrendCell[]>(
    [...ranked, createEmptyValue(query)].map(value => [JSON.stringify(value), []]),
  )
  const others: TrendCell[] = []
  for (const cell of cells) (cellsOf.get(JSON.stringify(cell.value)) ?? others).push(cell)
  const lines: TrendLine[] = []
  for (const [key, own] of cellsOf)
    if (own.length > 0) lines.push({ value: JSON.parse(key), data: mergeCells(query.math, own, count) })
  if (others.length > 0) lines.push({ value: 'other', data: mergeCells(query.math, others, count) })
  return lines
}

function mergeCells(math: TrendMath, cells: readonly TrendCell[], bucketCount: number): number[] {
  const data = new Array<number>(bucketCount).fill(0)
  const weights = new Array<number>(bucketCount).fill(0)
  for (const { bucket, figure, weight } of cells) {
    if (weight === 0) continue
    data[bucket] = weights[bucket] === 0 ? figure : combineFigures(math, data[bucket]!, figure)
    weights[bucket]! += weight
  }
  if (!isAverageMath(math)) return data
  return data.map((sum, bucket) => (weights[bucket] === 0 ? 0 : sum / weights[bucket]!))
}

function combineFigures(math: TrendMath, a: number, b: number): number {
  if (math.kind === 'numbers' && math.aggregate === 'min') return Math.min(a, b)
  return math.kind === 'numbers' && math.aggregate === 'max' ? Math.max(a, b) : a + b
}

/** Whether figures are sums that have to be divided by their weights. */
export function isAverageMath(math: TrendMath): boolean {
  return math.kind === 'numbers' && math.aggregate === 'avg'
}

/** Whether the figure of several values can be computed from the figures of the single values. */
export function isAdditiveMath(math: TrendMath): boolean {
  return math.kind === 'events' || (math.kind === 'numbers' && ['sum', 'avg', 'min', 'max'].includes(math.aggregate))
}

export function createEmptyValue({ breakdown }: TrendCountQuery): BreakdownValue {
  return (breakdown?.by ?? []).map(() => '')
}

/** Represents all values without a separate line; a real value has at least one part. */
export const otherValue: BreakdownValue = []
