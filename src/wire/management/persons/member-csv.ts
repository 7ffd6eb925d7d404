// Reads a table of persons that people exported elsewhere: finds the column that names them, and its ids. Works in
// steps, since a table of a few mebibytes may have a million cells.

import { type CsvDelimiter, csvDelimiters, type QuotedTextOptions, readQuotedText } from '#core/csv.ts'
import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { err, ok, type Result } from '#core/result.ts'

/** Larger tables are sent in several requests. */
export const tableRowsMax = 100_000
/** Longer than any id that a person can have. */
const cellCharsMax = 10_000
const columnsMax = 1_000
/** How much is read between two checks of the time. */
const perLook = { cells: 256, chars: 128 * 1024 }

/**
 * The kinds of ids by head, the most specific first: a `uuid` next to them may be an event's uuid. Heads are in lower
 * case, without blanks, dots, hyphens and underscores: `Person .id` is one of PostHog's. `uuid` is the head in our own
 * export of persons.
 */
const kindOfHead: ReadonlyMap<string, MemberIds['kind']> = new Map([
  ['personid', 'person'],
  ['personuuid', 'person'],
  ['distinctid', 'distinct_id'],
  ['uuid', 'person'],
])
const headNames = [...kindOfHead.keys()]
/** Excel names the separator in a first line. */
const separatorLine = /^sep=([,;\t|])(?:\r\n|\r|\n|$)/i
const separatorLineCharsMax = 10

/**
 * Reads RFC 4180, with or without a head. A column whose head is `person_id`, `distinct_id` or `uuid` (in any spelling)
 * holds the ids. The separator is named by a first line such as `sep=;`, or else taken from the head. A single column
 * without such a head holds ids from its first row on; any other head is then reported as an id without a person. Empty
 * rows are skipped.
 */
export class MemberTable {
  readonly #text: string
  readonly #quoting: QuotedTextOptions
  readonly #cellEnd: RegExp
  #at: number
  #cells: string[] = []
  /** Starts at 1; empty rows count. */
  #rowNumber = 1
  readonly #ids: string[] = []
  #column = 0
  #kind: MemberIds['kind'] | null = null
  #problem: string | null = null

  constructor(text: string) {
    this.#text = text
    this.#at = text.startsWith('\ufeff') ? 1 : 0
    const [line, said] = separatorLine.exec(text.slice(this.#at, this.#at + separatorLineCharsMax)) ?? []
    if (line !== undefined) {
      this.#at += line.length
      this.#rowNumber++
    }
    const delimiter = (said as CsvDelimiter | undefined) ?? findDelimiter(text.slice(this.#at, this.#at + headCharsMax))
    this.#quoting = { end: text.length, delimiter, escapes: 'none', charsMax: cellCharsMax }
    this.#cellEnd = new RegExp(`[${delimiter}\\r\\n]`, 'g')
  }

  /** Returns true when all is read, false when `isTimeUp` stopped it; call it again then. */
  advance(isTimeUp: () => boolean): boolean {
    let [cells, from] = [0, this.#at]
    while (this.#problem === null && this.#at < this.#text.length) {
      this.#readCell()
      if (++cells < perLook.cells && this.#at - from < perLook.chars) continue
      if (isTimeUp()) return false
      cells = 0
      from = this.#at
    }
    if (this.#problem === null && this.#cells.length > 0) this.#endRow()
    return true
  }

  /** The ids as written, trimmed; or a sentence about what cannot be read. */
  result(): Result<MemberIds, string> {
    return this.#problem === null ? ok({ kind: this.#kind ?? 'any', ids: this.#ids }) : err(this.#problem)
  }

  #readCell(): void {
    const text = this.#text
    if (this.#cells.length >= columnsMax) {
      this.#refuse(`has more than ${columnsMax} columns.`)
      return
    }
    const quoted = text[this.#at] === '"' ? readQuotedText(text, this.#at, this.#quoting) : null
    const from = quoted?.next ?? this.#at
    const end = this.#endFrom(from)
    if (quoted?.fault === 'unclosed') this.#refuse('is malformed: unmatched quotation mark.')
    else if (quoted?.fault === 'too_long' || (quoted === null && end - from > cellCharsMax))
      this.#refuse(`has a cell of more than ${cellCharsMax} characters.`)
    else if (quoted !== null && end > from) this.#refuse('is malformed: text after a closing quotation mark.')
    if (this.#problem !== null) return
    this.#cells.push((quoted?.text ?? text.slice(from, end)).trim())
    this.#at = end + 1
    if (text[end] === this.#quoting.delimiter) return
    if (text[end] === '\r' && text[this.#at] === '\n') this.#at++
    this.#endRow()
  }

  #endFrom(at: number): number {
    this.#cellEnd.lastIndex = at
    return this.#cellEnd.test(this.#text) ? this.#cellEnd.lastIndex - 1 : this.#text.length
  }

  #endRow(): void {
    if (this.#cells.some(cell => cell !== '')) this.#takeRow(this.#cells)
    this.#cells = []
    this.#rowNumber++
  }

  #takeRow(cells: readonly string[]): void {
    if (this.#kind === null && this.#ids.length === 0 && this.#readHead(cells)) return
    if (this.#kind === null && cells.length > 1) {
      this.#refuse(
        `has ${cells.length} columns, and the header row has no column distinct_id or person_id. ` +
          'Put ids that contain a comma in quotation marks.',
      )
    } else if (this.#ids.length >= tableRowsMax) this.#refuse(`exceeds the limit of ${tableRowsMax} ids per request.`)
    else this.#ids.push(cells[this.#column] ?? '')
  }

  #readHead(cells: readonly string[]): boolean {
    const heads = cells.map(normalizeHead)
    const name = headNames.find(name => heads.includes(name))
    if (name === undefined) return false
    this.#column = heads.indexOf(name)
    this.#kind = kindOfHead.get(name)!
    return true
  }

  #refuse(what: string): void {
    this.#problem = `Row ${this.#rowNumber} ${what}`
  }
}

/** What separates the columns of a head that names ids; a comma when the text does not begin with such a head. */
function findDelimiter(text: string): CsvDelimiter {
  const head = text.trimStart().split(/[\r\n]/, 1)[0]!
  const splitHead = (separator: string) => head.split(separator).map(cell => normalizeHead(cell.replaceAll('"', '')))
  return csvDelimiters.find(separator => splitHead(separator).some(cell => kindOfHead.has(cell))) ?? ','
}

/** The separator is searched for only in a head of at most this many characters. */
const headCharsMax = 100_000

function normalizeHead(head: string): string {
  return head.length > 40 ? head : head.toLowerCase().replaceAll(/[\s._-]/g, '')
}
