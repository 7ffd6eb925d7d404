import { type PointerEvent, type ReactNode, useRef } from 'react'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import type { GridColumn, GridSort } from './columns.ts'
import css from './grid.module.css'

export interface GridHeadProps<Row> {
  readonly columns: readonly GridColumn<Row>[]
  readonly activeColumn: number
  readonly sort: GridSort | null
  readonly onSort: (column: string) => void
  /** @param widthPx null for the width at first. */
  readonly onResize: (column: string, widthPx: number | null) => void
  /** The checkbox for all rows; null in a grid without selection. */
  readonly selectAll: ReactNode
  readonly isNarrow: boolean
}

export function GridHead<Row>(props: GridHeadProps<Row>) {
  const { columns, activeColumn, sort, onSort, onResize, selectAll, isNarrow } = props
  const offset = selectAll === null ? 0 : 1
  const at = (place: number) => (activeColumn === place ? 0 : -1)
  return (
    <div role="rowgroup" className={isNarrow ? 'visually-hidden' : undefined}>
      <div role="row" aria-rowindex={1} className={css.head}>
        {selectAll !== null && (
          <div
            role="columnheader"
            aria-colindex={1}
            data-row={-1}
            data-column={0}
            className={joinClasses(css.cell, css.control, css.sticky, css.selection)}
          >
            {isNarrow ? 'Selected' : selectAll}
          </div>
        )}
        {columns.map((column, place) => {
          const isSorted = sort?.column === column.id
          const hasButton = column.isSortable === true && !isNarrow
          return (
            <div
              key={column.id}
              role="columnheader"
              aria-colindex={place + offset + 1}
              aria-sort={
                !column.isSortable ? undefined : !isSorted ? 'none' : sort.isDescending ? 'descending' : 'ascending'
              }
              data-row={-1}
              data-column={place + offset}
              data-column-id={column.id}
              tabIndex={hasButton || isNarrow ? undefined : at(place + offset)}
              className={joinClasses(
                css.cell,
                css.headCell,
                column.isAtEnd && css.end,
                column.isRowHeader && css.sticky,
              )}
            >
              {hasButton ? (
                <button
                  type="button"
                  className={css.sort}
                  tabIndex={at(place + offset)}
                  onClick={() => onSort(column.id)}
                >
                  <span>{column.header}</span>
                  <Icon name={isSorted && sort.isDescending ? 'arrow-down' : 'arrow-up'} size={14} />
                </button>
              ) : (
                <span className={column.isHeaderHidden ? 'visually-hidden' : undefined}>{column.header}</span>
              )}
              {!isNarrow && !column.isHeaderHidden && <ResizeHandle column={column.id} onResize={onResize} />}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** For the pointer; the keyboard changes a column's width from its head, by Shift and an arrow. */
function ResizeHandle({ column, onResize }: { column: string; onResize: GridHeadProps<never>['onResize'] }) {
  const drag = useRef<{ fromX: number; widthPx: number; forward: number } | null>(null)
  const start = (event: PointerEvent<HTMLSpanElement>) => {
    const cell = event.currentTarget.parentElement!
    const forward = getComputedStyle(cell).direction === 'rtl' ? -1 : 1
    drag.current = { fromX: event.clientX, widthPx: cell.offsetWidth, forward }
    event.currentTarget.setPointerCapture(event.pointerId)
    event.preventDefault()
  }
  return (
    <span
      aria-hidden="true"
      className={css.resize}
      onPointerDown={start}
      onPointerMove={event => {
        if (drag.current === null) return
        const { fromX, widthPx, forward } = drag.current
        onResize(column, widthPx + (event.clientX - fromX) * forward)
      }}
      onPointerUp={() => {
        drag.current = null
      }}
      onDoubleClick={() => onResize(column, null)}
    />
  )
}
