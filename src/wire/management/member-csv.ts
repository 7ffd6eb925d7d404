// A table of persons, as people export it from elsewhere: which column names them, and what stands in it. Read in steps,
// since a table of a few mebibytes may be a million cells.

import type { MemberIds } from '#core/flags/evaluation/member-ids.ts'
import { err, ok, type Result } from '#core/result.ts'

/** More is sent in several requests. */
export const tableRowsMax = 100_000
/** Longer than any id that a person can have. */
const cellCharsMax = 10_000
const columnsMax = 1_000
const cellsPerLook = 256

/** Heads by what they mean, folded: lower case, without spaces, hyphens and underscores. */
const kindOfHead: ReadonlyMap<string, MemberIds['kind']> = new Map([
  ['distinctid', 'distinct_id'],
  ['personid', 'person'],
  ['personuuid', 'person'],
])

/**
 * Reads RFC 4180, with or without a head. A column whose head is `distinct_id` or `person_id` (however it is spelt) holds the
 * ids; a single column without such a head is ids throughout, its first row included: a head of another name is then an id
 * that leads to nobody, and is told as such. Empty rows are nothing.
 */
export class MemberTable {
  private readonly text: string
  private at: number
  private cells: string[] = []
  /** From 1; empty rows count. */
  private rowNumber = 1
  private readonly ids: string[] = []
  private column = 0
  private kind: MemberIds['kind'] | null = null
  private problem: string | null = null

  constructor(text: string) {
    this.text = text
    this.at = text.startsWith('\ufeff') ? 1 : 0
  }

  /** Reads until all is read (true) or `isTimeUp` says stop (false): call again then. */
  advance(isTimeUp: () => boolean): boolean {
    for (let count = 1; this.problem === null && this.at < this.text.length; count++) {
      this.readCell()
      if (count % cellsPerLook === 0 && isTimeUp()) return false
    }
    if (this.problem === null && this.cells.length > 0) this.endRow()
    return true
  }

  /** The ids as they stand there, without spaces around them; or a sentence about what cannot be read. */
  result(): Result<MemberIds, string> {
    return this.problem === null ? ok({ kind: this.kind ?? 'any', ids: this.ids }) : err(this.problem)
  }

  private readCell(): void {
    const { text } = this
    if (this.cells.length >= columnsMax) {
      this.refuse(`has more than ${columnsMax} columns.`)
      return
    }
    const end = text[this.at] === '"' ? this.readQuoted() : this.readPlain()
    if (end === null) return
    this.at = end + 1
    if (text[end] === ',') return
    if (text[end] === '\r' && text[this.at] === '\n') this.at++
    this.endRow()
  }

  /** @returns where the cell ends: at a comma, a line end or the end of the text. */
  private readPlain(): number | null {
    const end = this.endFrom(this.at)
    if (end - this.at > cellCharsMax) this.refuse(cellTooLong)
    else this.cells.push(this.text.slice(this.at, end).trim())
    return this.problem === null ? end : null
  }

  private readQuoted(): number | null {
    const { text } = this
    const from = this.at + 1
    for (let quote = text.indexOf('"', from); ; quote = text.indexOf('"', quote + 2)) {
      if (quote === -1) this.refuse('cannot be read: a quotation mark stands alone.')
      else if (quote - from > cellCharsMax) this.refuse(cellTooLong)
      else if (text[quote + 1] === '"') continue
      else if (quote + 1 < text.length && !',\r\n'.includes(text[quote + 1]!))
        this.refuse('cannot be read: something stands behind a closing quotation mark.')
      else {
        this.cells.push(text.slice(from, quote).replaceAll('""', '"').trim())
        return quote + 1
      }
      return null
    }
  }

  private endFrom(at: number): number {
    cellEnd.lastIndex = at
    return cellEnd.test(this.text) ? cellEnd.lastIndex - 1 : this.text.length
  }

  private endRow(): void {
    if (this.cells.some(cell => cell !== '')) this.takeRow(this.cells)
    this.cells = []
    this.rowNumber++
  }

  private takeRow(cells: readonly string[]): void {
    if (this.kind === null && this.ids.length === 0 && this.readHead(cells)) return
    if (this.kind === null && cells.length > 1) {
      this.refuse(
        `has ${cells.length} columns, and the first row names none of them distinct_id or person_id. ` +
          'An id that holds a comma stands in quotation marks.',
      )
    } else if (this.ids.length >= tableRowsMax) this.refuse(`is too many: at most ${tableRowsMax} ids come at once.`)
    else this.ids.push(cells[this.column] ?? '')
  }

  private readHead(cells: readonly string[]): boolean {
    const column = cells.findIndex(cell => kindOfHead.has(folded(cell)))
    if (column === -1) return false
    this.column = column
    this.kind = kindOfHead.get(folded(cells[column]!))!
    return true
  }

  private refuse(what: string): void {
    this.problem = `Row ${this.rowNumber} ${what}`
  }
}

const cellEnd = /[,\r\n]/g
const cellTooLong = `has a cell of more than ${cellCharsMax} characters.`

function folded(head: string): string {
  return head.length > 40 ? head : head.toLowerCase().replaceAll(/[\s_-]/g, '')
}
