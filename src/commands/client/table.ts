// Tables of text for people: columns aligned in every script, and truncated to the width of the terminal.

import { toPrintableName } from '#core/printable.ts'
import type { Style, Terminal } from './terminal.ts'
import { measureTextWidth, truncateToWidth } from './text-width.ts'

export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string
  readonly align?: 'right'
  readonly style?: (row: Row) => Style | null
  /**
   * In a narrow terminal, the cells may be truncated to this many terminal columns. A column without `widthMin` is never
   * truncated.
   */
  readonly widthMin?: number
}

const gap = '  '

/** @returns lines, the first with the titles. Control characters in cells are escaped. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], terminal: Terminal): string[] {
  const texts = rows.map(row => columns.map(column => toPrintableName(column.value(row))))
  const widths = columns.map(({ title }, index) =>
    texts.reduce((width, cells) => Math.max(width, measureTextWidth(cells[index]!)), measureTextWidth(title)),
  )
  shrink(widths, columns, terminal.width)
  const formatLine = (cells: readonly string[], styleOf: (index: number) => Style | null) => {
    const parts = cells.map((cell, index) => {
      const text = truncateToWidth(cell, widths[index]!)
      const style = styleOf(index)
      const painted = style === null || text === '' ? text : terminal.paint(style, text)
      const padding = ' '.repeat(widths[index]! - measureTextWidth(text))
      return columns[index]!.align === 'right' ? padding + painted : painted + padding
    })
    return parts.join(gap).trimEnd()
  }
  return [
    formatLine(
      columns.map(({ title }) => title),
      () => 'bold',
    ),
    ...rows.map((row, at) => formatLine(texts[at]!, index => columns[index]!.style?.(row) ?? null)),
  ]
}

/** Narrows the widest column that may be narrowed, until the lines fit or no column may be narrowed further. */
function shrink(widths: number[], columns: readonly Column<never>[], widthMax: number | null): void {
  if (widthMax === null) return
  let tooMany = widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1)) - widthMax
  while (tooMany > 0) {
    const spare = columns.map(({ widthMin }, index) => (widthMin === undefined ? 0 : widths[index]! - widthMin))
    const widest = columns.reduce<number>(
      (best, _column, index) => (spare[index]! > 0 && (best < 0 || widths[index]! > widths[best]!) ? index : best),
      -1,
    )
    if (widest < 0) return
    widths[widest]!--
    tooMany--
  }
}
