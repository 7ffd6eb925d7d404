// Pages of what may be large: definitions of up to a mebibyte each. A page that would be too much for a front to take in one
// go is cut before it is read.

/** Characters of one page; the largest item alone may have more. */
const pageTextCharsMax = 1024 * 1024

/** How many rows, from the first on, fit into one page: one at least, when there is any. */
export function fittingRows(rows: readonly { readonly chars: number }[]): number {
  let chars = 0
  for (const [index, row] of rows.entries()) {
    chars += Number(row.chars)
    if (chars > pageTextCharsMax && index > 0) return index
  }
  return rows.length
}
