// Where a key moves the focus in a grid. Source: WAI-ARIA Authoring Practices, grid pattern.

/** A cell. Row -1 is the head. */
export interface CellPlace {
  readonly row: number
  readonly column: number
}

export interface GridSize {
  readonly rowCount: number
  readonly columnCount: number
  readonly rowsPerPage: number
  /** Whether the head can be reached. */
  readonly hasHead: boolean
}

export interface PressedKey {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly altKey: boolean
  readonly shiftKey: boolean
}

/** @returns the next place, or null if the key does not move the focus. */
export function moveFocus(
  from: CellPlace,
  pressed: PressedKey,
  size: GridSize,
  isRightToLeft = false,
): CellPlace | null {
  if (pressed.altKey || pressed.shiftKey || size.columnCount === 0) return null
  const isFar = pressed.ctrlKey || pressed.metaKey
  const firstRow = size.hasHead ? -1 : 0
  const to = (row: number, column: number): CellPlace => ({
    row: clamp(row, firstRow, size.rowCount - 1),
    column: clamp(column, 0, size.columnCount - 1),
  })
  const { row, column } = from
  const far = Math.max(size.rowCount, size.columnCount)
  const forward = isRightToLeft ? -1 : 1
  switch (pressed.key) {
    case 'ArrowDown':
      return to(isFar ? far : row + 1, column)
    case 'ArrowUp':
      return to(isFar ? 0 : row - 1, column)
    case 'ArrowRight':
      return to(row, isFar ? far * forward : column + forward)
    case 'ArrowLeft':
      return to(row, isFar ? -far * forward : column - forward)
    case 'Home':
      return isFar ? to(0, 0) : to(row, 0)
    case 'End':
      return isFar ? to(far, far) : to(row, far)
    case 'PageDown':
      return isFar ? null : to(row + size.rowsPerPage, column)
    case 'PageUp':
      return isFar ? null : to(row === -1 ? -1 : Math.max(0, row - size.rowsPerPage), column)
    case 'j':
      return isFar ? null : to(row + 1, column)
    case 'k':
      return isFar ? null : to(row - 1, column)
    default:
      return null
  }
}

function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(max, value))
}
