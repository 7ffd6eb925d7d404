// Reads the cells of CSV, RFC 4180. A quote only has a meaning at the start of a cell, as in spreadsheets: `5" disk` is plain
// text. Source: docs/wire/import.md §1.9.

/** What separates the cells of a row. */
export type CsvDelimiter = (typeof csvDelimiters)[number]

/** The most common first. */
export const csvDelimiters = [',', ';', '\t', '|'] as const
export const delimiterNames: Readonly<Record<CsvDelimiter, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'vertical bars',
}

/** Ends a row. Spreadsheets call `\r` "Macintosh"; the `\r\n` of Windows counts as `\n`. */
export type CsvRowEnd = '\n' | '\r'

/** The dialect of a CSV file. */
export interface CsvShape {
  readonly delimiter: CsvDelimiter
  readonly rowEnd: CsvRowEnd
  /**
   * Whether a backslash in a quoted cell escapes a quote, a delimiter, a line end or another backslash, as Spark, Redshift
   * and MySQL write them. Otherwise two quotes mean one, and a backslash has no special meaning.
   */
  readonly hasEscapes: boolean
}

/** The most common dialect. */
export const plainCsv: CsvShape = { delimiter: ',', rowEnd: '\n', hasEscapes: false }

/**
 * @param row one row. Line breaks within quotes belong to their cell; a line break at the row's end is ignored.
 * @returns null for more than `cellsMax` cells.
 */
export function splitCsvRow(
  row: string,
  delimiter: CsvDelimiter = ',',
  cellsMax = Infinity,
  hasEscapes = false,
): string[] | null {
  const end = row.length - measureLineEnd(row)
  const quoting: QuotedTextOptions = { end, delimiter, escapes: hasEscapes ? 'all' : 'stray' }
  const cells: string[] = []
  for (let at = 0; at <= end; at++) {
    let quoted = ''
    if (row[at] === '"' && at < end) ({ text: quoted, next: at } = readQuotedText(row, at, quoting))
    const after = row.indexOf(delimiter, at)
    const next = after < 0 || after > end ? end : after
    if (cells.push(quoted + row.slice(at, next)) > cellsMax) return null
    at = next
  }
  return cells
}

/**
 * Reads the quoted beginning of a cell, in time and memory proportional to its length.
 * @param at offset of the first quote.
 * @param escapes what a backslash escapes: `none` is RFC 4180, `stray` only a quote that cannot be the end of the cell.
 * @param charsMax the maximum length of the text between the first and the last quote.
 * @returns where the text ends, and `fault` if it has no last quote or is too long.
 */
export function readQuotedText(
  row: string,
  at: number,
  { end, delimiter, escapes, charsMax = Infinity }: QuotedTextOptions,
): { readonly text: string; readonly next: number; readonly fault: 'unclosed' | 'too_long' | null } {
  const closeMax = at + 1 + charsMax
  let copiedPart = ''
  let text = ''
  for (let stretches = 1; ; stretches++) {
    // The text consists of quoted stretches: two consecutive quotes mean one quote and start the next stretch.
    const close = findClosingQuote(row, at + 1, end, delimiter, escapes)
    text += unescapeText(row.slice(at + 1, close), delimiter, escapes)
    const fault = close === end ? 'unclosed' : close > closeMax ? 'too_long' : null
    at = close + 1
    if (fault !== null || row[at] !== '"' || at >= end) return { text: copiedPart + text, next: at, fault }
    text += '"'
    if (stretches % copiedPieces === 0) {
      copiedPart += copyText(text)
      text = ''
    }
  }
}

export interface QuotedTextOptions {
  readonly end: number
  readonly delimiter: CsvDelimiter
  readonly escapes: Escapes
  readonly charsMax?: number
}

type Escapes = 'none' | 'stray' | 'all'

/** A line end includes any number of carriage returns before the line feed. */
function measureLineEnd(row: string): number {
  if (!row.endsWith('\n')) return row.endsWith('\r') ? 1 : 0
  let start = row.length - 1
  while (row[start - 1] === '\r') start--
  return row.length - start
}

/** @returns the position of the quote that closes a stretch; the end of the row if there is none. */
function findClosingQuote(row: string, from: number, end: number, delimiter: CsvDelimiter, escapes: Escapes): number {
  for (let at = row.indexOf('"', from); at >= 0 && at <= end; at = row.indexOf('"', at + 1)) {
    if (escapes === 'none' || !isEscaped(row, from, at)) return at
    if (escapes === 'stray' && canQuoteCloseCell(row[at + 1], delimiter)) return at
  }
  return end
}

function isEscaped(row: string, from: number, at: number): boolean {
  let backslashes = 0
  while (at - backslashes > from && row[at - backslashes - 1] === '\\') backslashes++
  return backslashes % 2 === 1
}

/**
 * Whether a quote after a backslash may end its cell or be the first of two, given the next character. Before any other
 * character, the quote must be escaped, whatever the dialect. `createRowEndFinder` uses the same rule.
 */
export function canQuoteCloseCell(next: string | undefined, delimiter: CsvDelimiter): boolean {
  return next === undefined || next === '"' || next === delimiter || next === '\n' || next === '\r'
}

/** Even in a dialect without escapes, a quote within a stretch must have been escaped, so its backslash is removed too. */
function unescapeText(text: string, delimiter: CsvDelimiter, escapes: Escapes): string {
  if (escapes !== 'all' && !text.includes('"')) return text
  let [copiedPart, next, from, removed] = ['', '', 0, 0]
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at + 2)) {
    const unit = text[at + 1]
    if (unit === undefined || (unit !== delimiter && !'"\\\r\n'.includes(unit))) continue
    next += text.slice(from, at)
    from = at + 1
    if (++removed % copiedPieces === 0) {
      copiedPart += copyText(next)
      next = ''
    }
  }
  return from === 0 ? text : copiedPart + next + text.slice(from)
}

/** How many pieces are concatenated into a text before the text is copied. */
const copiedPieces = 4_096

/**
 * Copies a concatenated text, so that V8 frees its pieces: for a cell of quotes, they take fifty times the bytes of the
 * cell.
 */
function copyText(text: string): string {
  return JSON.parse(JSON.stringify(text)) as string
}
