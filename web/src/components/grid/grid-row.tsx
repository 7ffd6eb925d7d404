import { memo, type ReactNode } from 'react'
import { joinClasses } from '../class-names.ts'
import { CheckboxCell } from '../controls/checkbox.tsx'
import type { GridColumn } from './columns.ts'
import css from './grid.module.css'

/** The checkbox's column is at this place among the columns that are walked. */
export const selectionColumn = 0

export interface GridRowProps<Row> {
  readonly row: Row | undefined
  readonly index: number
  readonly startPx: number
  readonly columns: readonly GridColumn<Row>[]
  /** The place of the column that the focus is or will be in; -1 in all rows but one. */
  readonly activeColumn: number
  /** Undefined in a grid without selection. */
  readonly isSelected: boolean | undefined
  readonly label: string
  readonly isNarrow: boolean
  readonly isLinked: boolean
  readonly onSelect: (index: number, isOn: boolean, isRange: boolean) => void
}

/** All but `row` are primitive or stay the same, so that a row is rendered only when something in it changes. */
export const GridRow = memo(GridRowLooks) as typeof GridRowLooks

function GridRowLooks<Row>(props: GridRowProps<Row>) {
  const { row, index, startPx, columns, activeColumn, isSelected, label, isNarrow, isLinked, onSelect } = props
  const offset = isSelected === undefined ? 0 : 1
  const at = (place: number): 0 | -1 => (activeColumn === place ? 0 : -1)
  const selection = isSelected !== undefined && (
    <div
      role="gridcell"
      aria-colindex={1}
      data-row={index}
      data-column={selectionColumn}
      className={joinClasses(css.cell, css.control, css.sticky, css.selection)}
    >
      {row !== undefined && (
        <CheckboxCell
          aria-label={`Select ${label}`}
          isOn={isSelected}
          onChange={(isOn, { shiftKey }) => onSelect(index, isOn, shiftKey)}
          tabIndex={at(selectionColumn)}
        />
      )}
    </div>
  )
  const cell = (column: GridColumn<Row>, place: number) => {
    const isControl = column.isControl === true && row !== undefined
    return (
      <div
        key={column.id}
        role={column.isRowHeader ? 'rowheader' : 'gridcell'}
        aria-colindex={place + 1}
        data-row={index}
        data-column={place}
        tabIndex={isControl ? undefined : at(place)}
        className={joinClasses(
          css.cell,
          column.isControl && !column.isRowHeader && css.control,
          column.isAtEnd && css.end,
          column.isRowHeader && css.sticky,
          row === undefined && css.loading,
        )}
      >
        {row === undefined ? <span className="visually-hidden">Loading</span> : column.cell(row, at(place))}
      </div>
    )
  }
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      aria-busy={row === undefined || undefined}
      className={joinClasses(css.row, isLinked && css.linked)}
      style={{ transform: `translateY(${startPx}px)` }}
    >
      {selection}
      {isNarrow ? foldIntoLines(columns, offset, cell) : columns.map((column, place) => cell(column, place + offset))}
    </div>
  )
}

function foldIntoLines<Row>(
  columns: readonly GridColumn<Row>[],
  offset: number,
  cell: (column: GridColumn<Row>, place: number) => ReactNode,
): ReactNode {
  const cellsAt = (position: NonNullable<GridColumn<Row>['narrow']>) =>
    columns.map((column, place) =>
      (column.narrow ?? (column.isRowHeader ? 'first' : 'second')) === position ? cell(column, place + offset) : null,
    )
  return (
    <>
      {cellsAt('start')}
      <div className={css.lines}>
        <div className={css.line}>{cellsAt('first')}</div>
        <div className={joinClasses(css.line, css.second)}>{cellsAt('second')}</div>
      </div>
      {cellsAt('end')}
    </>
  )
}
