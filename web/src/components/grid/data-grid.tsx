// The list of every screen: an ARIA grid of any number of rows, of which only those in sight are in the page. One cell is
// in the tab order; keys move it (grid-keys.ts). Cells contain native elements, and rows are rendered only when they change.

import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual'
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { CheckboxCell } from '../controls/checkbox.tsx'
import { formatCount } from '../text/format-number.ts'
import { clampWidth, columnWidthPxMin, type GridColumn, type GridSort, layOutColumns } from './columns.ts'
import css from './grid.module.css'
import { GridHead } from './grid-head.tsx'
import { type CellPlace, moveFocus } from './grid-keys.ts'
import { GridRow } from './grid-row.tsx'
import {
  countSelected,
  isSelected,
  listRange,
  noSelection,
  type Selection,
  selectRows,
  wholeSelection,
} from './selection.ts'

export interface DataGridProps<Row> {
  readonly label: string
  /** The same object from one rendering to the next, so that rows need not be rendered again. */
  readonly columns: readonly GridColumn<Row>[]
  readonly rowCount: number
  /** A row, which is undefined while it is not loaded. The same object as long as nothing in it changes. */
  readonly rowAt: (index: number) => Row | undefined
  readonly rowKey: (row: Row) => string
  /** For reading out: "new-checkout". */
  readonly rowLabel: (row: Row) => string
  /** The rows that are in sight or nearly so, for loading them. */
  readonly onRange?: (first: number, last: number) => void
  readonly sort?: GridSort | null
  readonly onSort?: (column: string) => void
  readonly selection?: Selection
  readonly onSelectionChange?: (selection: Selection) => void
  /** Whether a row has a link made with `rowLinkProps`, which a click anywhere in the row follows. */
  readonly isLinked?: boolean
  /** Keys that the grid has no use for, such as `e`; `preventDefault` marks them as used. */
  readonly onRowKey?: (event: KeyboardEvent, index: number) => void
  /** The menu key on a row: open its menu at this element. */
  readonly onRowMenu?: (index: number, anchor: Element) => void
  /** The rows are older than what was asked for. */
  readonly isDimmed?: boolean
  /** In place of rows. */
  readonly empty?: ReactNode
}

/** Below this width of the grid, rows have two lines: what a window of 720 px leaves. */
const wideRem = 43
const widthStepPx = 16
const overscanRows = 8

export function DataGrid<Row>(props: DataGridProps<Row>) {
  const { label, columns, rowCount, rowAt, rowKey, rowLabel, onRange, selection, isLinked = false } = props
  const scroller = useRef<HTMLDivElement>(null)
  const probe = useRef<HTMLDivElement>(null)
  const hasSelection = selection !== undefined
  const { isNarrow, rowPx } = useSize(scroller, probe)
  const headPx = isNarrow ? 0 : rowPx
  const [active, setActive] = useState<CellPlace>({ row: 0, column: 0 })
  const [widthsPx, setWidthsPx] = useState<Readonly<Record<string, number>>>({})
  const isFocusDue = useRef(false)
  const rangeFrom = useRef<number | null>(null)

  // After a shorter list has arrived, or none.
  const activeRow = Math.min(active.row, rowCount - 1)
  const hasHead = !isNarrow
  const activeCell = { row: !hasHead ? Math.max(0, activeRow) : activeRow, column: active.column }
  const virtualizer = useVirtualizer({
    count: rowCount,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: overscanRows,
    scrollMargin: headPx,
    scrollPaddingStart: headPx,
    rangeExtractor: range => {
      const seen = defaultRangeExtractor(range)
      const { row } = activeCell
      if (row < 0 || row >= rowCount || seen.includes(row)) return seen
      // The row that has the focus stays in the page, or the focus would be lost.
      return row < (seen[0] ?? 0) ? [row, ...seen] : [...seen, row]
    },
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows are measured again when their height changes
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, rowPx])

  const { startIndex, endIndex } = virtualizer.range ?? { startIndex: 0, endIndex: 0 }
  useEffect(() => {
    if (rowCount > 0) onRange?.(Math.max(0, startIndex - overscanRows), Math.min(rowCount - 1, endIndex + overscanRows))
  }, [onRange, startIndex, endIndex, rowCount])

  useLayoutEffect(() => {
    if (!isFocusDue.current) return
    isFocusDue.current = false
    const cell = findCell(scroller.current!, activeCell)
    const control = cell?.querySelector<HTMLElement>('a, button, input')
    ;(control ?? cell)?.focus({ preventScroll: true })
    if (activeCell.row < 0) cell?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  })

  const changeSelection = props.onSelectionChange
  const latest = useRef({ selection, changeSelection, rowAt, rowKey })
  latest.current = { selection, changeSelection, rowAt, rowKey }
  const select = useCallback((index: number, isOn: boolean, isRange: boolean) => {
    const { selection, changeSelection, rowAt, rowKey } = latest.current
    const indices = isRange && rangeFrom.current !== null ? listRange(rangeFrom.current, index) : [index]
    const rows = indices.map(rowAt).filter(row => row !== undefined)
    rangeFrom.current = index
    changeSelection?.(selectRows(selection ?? noSelection, rows.map(rowKey), isOn))
  }, [])

  const resize = (column: string, widthPx: number | null) => {
    const { [column]: _, ...others } = widthsPx
    setWidthsPx(widthPx === null ? others : { ...others, [column]: clampWidth(widthPx) })
  }

  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const target = event.target as HTMLElement
    if (target.matches('textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])')) return
    const { row } = activeCell
    const resized = target.closest<HTMLElement>('[data-column-id]')
    if (resized !== null && event.shiftKey && /^Arrow(?:Left|Right)$/.test(event.key)) {
      const isWider = (event.key === 'ArrowRight') !== isRightToLeft(target)
      const widthPx = resized.offsetWidth + (isWider ? widthStepPx : -widthStepPx)
      resize(resized.dataset.columnId!, Math.max(columnWidthPxMin, widthPx))
      event.preventDefault()
      return
    }
    const columnCount = columns.length + (hasSelection ? 1 : 0)
    const rowsPerPage = Math.max(1, Math.floor((scroller.current!.clientHeight - headPx) / rowPx) - 1)
    const next = moveFocus(activeCell, event, { rowCount, columnCount, rowsPerPage, hasHead }, isRightToLeft(target))
    if (next !== null) {
      event.preventDefault()
      isFocusDue.current = true
      setActive(next)
      if (next.row >= 0) virtualizer.scrollToIndex(next.row)
      return
    }
    if (row < 0) return
    if (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10')) {
      event.preventDefault()
      props.onRowMenu?.(row, target)
      return
    }
    if (event.key === 'Enter' && isLinked && target.matches('[data-column]')) {
      findRowLink(target)?.click()
      return
    }
    const shown = rowAt(row)
    if (hasSelection && /^x$/i.test(event.key) && !event.ctrlKey && !event.metaKey && shown !== undefined) {
      event.preventDefault()
      select(row, event.shiftKey || !isSelected(selection, rowKey(shown)), event.shiftKey)
      return
    }
    props.onRowKey?.(event, row)
  }

  const onFocus = ({ target }: { target: Element }) => {
    const cell = target.closest<HTMLElement>('[data-column]')
    if (cell === null) return
    const place = { row: Number(cell.dataset.row), column: Number(cell.dataset.column) }
    if (place.row !== activeCell.row || place.column !== activeCell.column) setActive(place)
  }

  const { template, widthMin } = useMemo(
    () => layOutColumns(columns, widthsPx, hasSelection),
    [columns, widthsPx, hasSelection],
  )
  const selectedCount = hasSelection ? countSelected(selection, rowCount) : 0
  return (
    <div
      ref={scroller}
      className={css.scroller}
      data-narrow={isNarrow || undefined}
      data-dimmed={props.isDimmed || undefined}
    >
      <div ref={probe} className={css.probe} />
      <div
        role="grid"
        aria-label={label}
        aria-rowcount={rowCount + 1}
        aria-colcount={columns.length + (hasSelection ? 1 : 0)}
        aria-multiselectable={hasSelection || undefined}
        aria-busy={props.isDimmed || undefined}
        className={css.grid}
        style={
          isNarrow
            ? undefined
            : ({
                '--columns': template,
                minWidth: widthMin,
                '--sticky': hasSelection ? '2rem' : '0',
              } as React.CSSProperties)
        }
        onKeyDown={onKeyDown}
        onFocus={onFocus}
        onClick={isLinked ? followRowLink : undefined}
        onAuxClick={isLinked ? followRowLink : undefined}
      >
        <GridHead
          columns={columns}
          activeColumn={activeCell.row === -1 ? activeCell.column : -1}
          sort={props.sort ?? null}
          onSort={column => props.onSort?.(column)}
          onResize={resize}
          isNarrow={isNarrow}
          selectAll={
            hasSelection ? (
              <CheckboxCell
                aria-label={`Select all ${formatCount(rowCount)}`}
                isOn={rowCount > 0 && selectedCount === rowCount}
                isMixed={selectedCount > 0 && selectedCount < rowCount}
                tabIndex={activeCell.row === -1 && activeCell.column === 0 ? 0 : -1}
                onChange={isOn => changeSelection?.(isOn ? wholeSelection : noSelection)}
              />
            ) : null
          }
        />
        <div role="rowgroup" className={css.body} style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map(({ index, start }) => {
            const row = rowAt(index)
            return (
              <GridRow
                key={index}
                row={row}
                index={index}
                startPx={start - headPx}
                columns={columns}
                activeColumn={index === activeCell.row ? activeCell.column : -1}
                isSelected={!hasSelection ? undefined : row !== undefined && isSelected(selection, rowKey(row))}
                label={row === undefined ? '' : rowLabel(row)}
                isNarrow={isNarrow}
                isLinked={isLinked}
                onSelect={select}
              />
            )
          })}
        </div>
      </div>
      {rowCount === 0 && props.empty}
    </div>
  )
}

/** The properties of the link in the column that names a row. */
export function rowLinkProps(tabIndex: 0 | -1) {
  return { className: css.rowLink, 'data-row-link': true, tabIndex }
}

/** A click anywhere in a row is a click on its link, in the same way: with Ctrl it opens another tab. */
function followRowLink(event: MouseEvent<HTMLElement>): void {
  const target = event.target as Element
  if (target.closest('a, button, input, label, [role=columnheader]') !== null) return
  // Somebody marks text to copy it.
  if (getSelection()?.isCollapsed === false) return
  const link = findRowLink(target)
  const { ctrlKey, metaKey, shiftKey, button } = event
  if (event.type === 'auxclick' && button !== 1) return
  const isNewTab = button === 1 || ctrlKey
  link?.dispatchEvent(
    new window.MouseEvent('click', { bubbles: true, cancelable: true, ctrlKey: isNewTab, metaKey, shiftKey }),
  )
}

function findRowLink(target: Element): HTMLElement | null {
  return target.closest('[role=row]')?.querySelector<HTMLElement>('[data-row-link]') ?? null
}

function findCell(grid: Element, { row, column }: CellPlace): HTMLElement | null {
  return grid.querySelector(`[data-row="${row}"][data-column="${column}"]`)
}

function isRightToLeft(element: Element): boolean {
  return getComputedStyle(element).direction === 'rtl'
}

/** Whether the grid is narrow, and how high its rows are in the chosen density and size of text. */
function useSize(scroller: React.RefObject<HTMLElement | null>, probe: React.RefObject<HTMLElement | null>) {
  const [size, setSize] = useState({ isNarrow: false, rowPx: 36 })
  useLayoutEffect(() => {
    const measure = () => {
      const remPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
      const isNarrow = scroller.current!.clientWidth < wideRem * remPx
      const rowPx = probe.current!.offsetHeight
      setSize(old => (old.isNarrow === isNarrow && old.rowPx === rowPx ? old : { isNarrow, rowPx }))
    }
    const observer = new ResizeObserver(measure)
    observer.observe(scroller.current!)
    observer.observe(probe.current!)
    measure()
    return () => observer.disconnect()
  }, [scroller, probe])
  return size
}
