// The cells of one row of CSV, RFC 4180. A quote counts only at the beginning of a cell, as spreadsheets read it: `5" disk`
// is a text. Source: docs/wire/import.md §1.9.

/** @param row one row; line breaks between quotes belong to their cell, one at the end to nothing. */
export function csvCells(row: string): string[] {
  const end = row.endsWith('\r\n') ? row.length - 2 : /[\r\n]$/.test(row) ? row.length - 1 : row.length
  const cells: string[] = []
  for (let at = 0; at <= end; at++) {
    let cell = ''
    while (row[at] === '"' && at < end) {
      // A cell is its quoted stretches; two quotes in a row stand for one and begin the next stretch.
      const close = closingQuote(row, at + 1, end)
      cell += row.slice(at + 1, close)
      at = close + 1
      if (row[at] === '"' && at < end) cell += '"'
    }
    const comma = row.indexOf(',', at)
    const next = comma < 0 || comma > end ? end : comma
    cells.push(cell + row.slice(at, next))
    at = next
  }
  return cells
}

/** @returns where the quote is that closes a cell; the end of the row when none does. */
function closingQuote(row: string, from: number, end: number): number {
  const at = row.indexOf('"', from)
  return at < 0 || at > end ? end : at
}
