// Pages of items that may be large: definitions of up to 1 MiB each, persons and groups of 640 KiB. A page that would
// be too much for a front at once is cut before it is read.

/** Bytes of one page; a page of a single item may have more. */
const pageBytesMax = 1024 * 1024

/** How many rows, from the first on, fit into one page: at least one, if there is any. */
export function countFittingRows(rows: readonly { readonly bytes: number }[], bytesMax = pageBytesMax): number {
  let bytes = 0
  for (const [index, row] of rows.entries()) {
    bytes += Number(row.bytes)
    if (bytes > bytesMax && index > 0) return index
  }
  return rows.length
}
