import type { ReactNode } from 'react'

export interface GridColumn<Row> {
  readonly id: string
  readonly header: string
  readonly isHeaderHidden?: boolean
  /** In px at first; also the least that a flexible column has. */
  readonly widthPx: number
  /** Takes what the others leave. */
  readonly isFlexible?: boolean
  /** Numbers are at the end. */
  readonly isAtEnd?: boolean
  /** Names the row, and stays in sight when the grid is scrolled sideways. The first column. */
  readonly isRowHeader?: boolean
  readonly isSortable?: boolean
  /** Where it is on narrow screens: at the start or the end of both lines, in one of them, or nowhere. */
  readonly narrow?: 'start' | 'first' | 'second' | 'end' | 'hidden'
  /** Whether the cell is one native link, button or input, which then gets the focus in place of the cell. */
  readonly isControl?: boolean
  /** @param tabIndex of the control. */
  readonly cell: (row: Row, tabIndex: 0 | -1) => ReactNode
}

export interface GridSort {
  readonly column: string
  readonly isDescending: boolean
}

export const columnWidthPxMin = 48
const columnWidthPxMax = 1_200
const selectionWidth = '2rem'

export function clampWidth(widthPx: number): number {
  return Math.round(Math.max(columnWidthPxMin, Math.min(columnWidthPxMax, widthPx)))
}

/** The value of `grid-template-columns`, and the least width of all together. */
export function layOutColumns(
  columns: readonly Pick<GridColumn<never>, 'id' | 'widthPx' | 'isFlexible'>[],
  widthsPx: Readonly<Record<string, number>>,
  hasSelection: boolean,
): { template: string; widthMin: string } {
  const widths = columns.map(column => widthsPx[column.id] ?? column.widthPx)
  // A flexible column whose width somebody has chosen keeps that width.
  const tracks = columns.map(({ id, isFlexible }, place) =>
    isFlexible && widthsPx[id] === undefined ? `minmax(${widths[place]}px, 1fr)` : `${widths[place]}px`,
  )
  // The rest goes to an empty track if no column takes it, so that rows fill the grid.
  const rest = tracks.some(track => track.endsWith('1fr)')) ? [] : ['1fr']
  const selection = hasSelection ? [selectionWidth] : []
  const totalPx = widths.reduce((sum, width) => sum + width, 0)
  return {
    template: [...selection, ...tracks, ...rest].join(' '),
    widthMin: hasSelection ? `calc(${totalPx}px + ${selectionWidth})` : `${totalPx}px`,
  }
}
