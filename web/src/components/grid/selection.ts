// Which rows of a grid are selected. A grid may have more rows than are loaded, so "all" is stored as such, along with the
// exceptions.

export interface Selection {
  readonly isAll: boolean
  /** The selected rows, or with `isAll` the rows that are not. */
  readonly keys: ReadonlySet<string>
}

export const noSelection: Selection = { isAll: false, keys: new Set() }
export const wholeSelection: Selection = { isAll: true, keys: new Set() }

export function isSelected({ isAll, keys }: Selection, key: string): boolean {
  return keys.has(key) !== isAll
}

export function countSelected({ isAll, keys }: Selection, rowCount: number): number {
  return isAll ? rowCount - keys.size : keys.size
}

/** Selects or deselects rows. */
export function selectRows(selection: Selection, keys: readonly string[], isOn: boolean): Selection {
  const next = new Set(selection.keys)
  for (const key of keys) {
    if (isOn === selection.isAll) next.delete(key)
    else next.add(key)
  }
  return { isAll: selection.isAll, keys: next }
}

/** The indices from one row to another, whichever is first. */
export function listRange(from: number, to: number): number[] {
  const first = Math.min(from, to)
  return Array.from({ length: Math.abs(to - from) + 1 }, (_, offset) => first + offset)
}
