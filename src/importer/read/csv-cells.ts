// The cells of one row of CSV, RFC 4180. A quote counts only at the beginning of a cell, as spreadsheets read it: `5" disk`
// is a text. Source: docs/wire/import.md §1.9.

/** What stands between the cells of a row. */
export type CsvDelimiter = (typeof delimiters)[number]

/** The first of equals counts, so a header of one column has commas. */
const delimiters = [',', ';', '\t', '|'] as const
export const delimiterNames: Readonly<Record<CsvDelimiter, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'vertical bars',
}

/** What ends a row: spreadsheets call the second one "Macintosh". Windows writes both, which is the first. */
export type CsvRowEnd = '\n' | '\r'

/** How the rows of a file are written. */
export interface CsvShape {
  readonly delimiter: CsvDelimiter
  readonly rowEnd: CsvRowEnd
  /**
   * A backslash in a quoted cell takes from a quote, a delimiter, a line end or another backslash what it means, as
   * Spark, Redshift and MySQL write them. Elsewhere two quotes stand for one, and a backslash for itself.
   */
  readonly hasEscapes: boolean
}

/** What most programs write. */
export const plainCsv: CsvShape = { delimiter: ',', rowEnd: '\n', hasEscapes: false }

/**
 * Spreadsheets write semicolons wherever the comma is a decimal sign, and nothing in a file says so but its header.
 * @param header the first line, and more where it ends in a carriage return alone.
 * @returns what stands there most often outside of quotes.
 */
export function csvDelimiter(header: Uint8Array): CsvDelimiter {
  const counts = new Map<string, number>()
  let isQuoted = false
  for (const unit of Buffer.from(header.buffer, header.byteOffset, header.length).toString('latin1')) {
    if (unit === '"') isQuoted = !isQuoted
    else if (unit === '\r' && !isQuoted) break
    else if (!isQuoted) counts.set(unit, (counts.get(unit) ?? 0) + 1)
  }
  return delimiters.reduce((best, each) => ((counts.get(each) ?? 0) > (counts.get(best) ?? 0) ? each : best))
}

/**
 * @param row one row; line breaks between quotes belong to their cell, one at the end to nothing.
 * @returns null for more cells than that.
 */
export function csvCells(
  row: string,
  delimiter: CsvDelimiter = ',',
  cellsMax = Infinity,
  hasEscapes = false,
): string[] | null {
  const end = row.length - lineEndLength(row)
  const cells: string[] = []
  for (let at = 0; at <= end; at++) {
    let begun = ''
    let cell = ''
    for (let stretches = 1; row[at] === '"' && at < end; stretches++) {
      // A cell is its quoted stretches; two quotes in a row stand for one and begin the next stretch.
      const close = closingQuote(row, at + 1, end, delimiter, hasEscapes)
      cell += unescapeText(row.slice(at + 1, close), delimiter, hasEscapes)
      at = close + 1
      if (row[at] === '"' && at < end) cell += '"'
      if (stretches % copiedPieces === 0) {
        begun += copyText(cell)
        cell = ''
      }
    }
    const after = row.indexOf(delimiter, at)
    const next = after < 0 || after > end ? end : after
    if (cells.push(begun + cell + row.slice(at, next)) > cellsMax) return null
    at = next
  }
  return cells
}

/** Any number of carriage returns before a line feed belongs to it. */
function lineEndLength(row: string): number {
  if (!row.endsWith('\n')) return row.endsWith('\r') ? 1 : 0
  let start = row.length - 1
  while (row[start - 1] === '\r') start--
  return row.length - start
}

/** @returns where the quote is that closes a cell, or stands before another; the end of the row when none does. */
function closingQuote(row: string, from: number, end: number, delimiter: CsvDelimiter, hasEscapes: boolean): number {
  for (let at = row.indexOf('"', from); at >= 0 && at <= end; at = row.indexOf('"', at + 1))
    if (!isEscaped(row, from, at) || (!hasEscapes && mayClose(row[at + 1], delimiter))) return at
  return end
}

function isEscaped(row: string, from: number, at: number): boolean {
  let backslashes = 0
  while (at - backslashes > from && row[at - backslashes - 1] === '\\') backslashes++
  return backslashes % 2 === 1
}

/**
 * Whether a quote behind a backslash may end its cell, or be the first of two. Before anything else nothing but the
 * backslash explains it, whatever the rest of the file is like: `rowEnds` decides the same.
 */
export function mayClose(next: string | undefined, delimiter: CsvDelimiter): boolean {
  return next === undefined || next === '"' || next === delimiter || next === '\n' || next === '\r'
}

/** Where two quotes stand for one, a text has a quote in it only if it was written with backslashes all the same. */
function unescapeText(text: string, delimiter: CsvDelimiter, hasEscapes: boolean): string {
  if (!(hasEscapes || text.includes('"'))) return text
  let [begun, next, from, escapes] = ['', '', 0, 0]
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at + 2)) {
    const unit = text[at + 1]
    if (unit === undefined || (unit !== delimiter && !'"\\\r\n'.includes(unit))) continue
    next += text.slice(from, at)
    from = at + 1
    if (++escapes % copiedPieces === 0) {
      begun += copyText(next)
      next = ''
    }
  }
  return from === 0 ? text : begun + next + text.slice(from)
}

/** How many pieces of a text are added to each other at most. */
const copiedPieces = 4_096

/** A text that is added up keeps all its pieces: a cell of nothing but quotes takes fifty times its bytes so. A copy has none. */
function copyText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string
}
