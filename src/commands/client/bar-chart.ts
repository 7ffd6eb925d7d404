const bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/**
 * A one-line chart: a bar for each value, and a blank for 0, so that the smallest value above 0 is visible.
 * @param valueMax the value of the tallest bar, to give several charts one scale; the greatest value unless given.
 */
export function formatBarChart(values: readonly number[], valueMax?: number): string {
  const max = valueMax ?? values.reduce((greatest, value) => Math.max(greatest, value), 0)
  return values
    .map(value => (value <= 0 || max <= 0 ? ' ' : bars[Math.min(7, Math.ceil((value / max) * 8) - 1)]!))
    .join('')
}

/** Sums each `perSum` neighbours, so that at most `countMax` sums remain; the last sum may be of fewer values. */
export function sumNeighbours(values: readonly number[], countMax: number): { sums: number[]; perSum: number } {
  const perSum = Math.max(1, Math.ceil(values.length / Math.max(1, countMax)))
  const sums: number[] = []
  for (let start = 0; start < values.length; start += perSum)
    sums.push(values.slice(start, start + perSum).reduce((sum, value) => sum + value, 0))
  return { sums, perSum }
}
