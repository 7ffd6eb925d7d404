// Counts the rows in the bytes of an export as they arrive, and finds where the last whole row ends.

const newline = 0x0a
const quote = 0x22

export class RowScanner {
  readonly #isQuoted: boolean
  #inQuotes = false
  #offset = 0
  /** The number of whole rows, including the header of CSV. */
  rowCount = 0
  /** Where the last whole row begins and ends. */
  lastStart = 0
  lastEnd = 0

  /** Rows of CSV may have line breaks within quotes; rows of JSON lines have none. */
  constructor(format: 'jsonl' | 'csv') {
    this.#isQuoted = format === 'csv'
  }

  scan(bytes: Uint8Array): void {
    if (this.#isQuoted) this.#scanQuoted(bytes)
    else for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) this.#endRow(at)
    this.#offset += bytes.length
  }

  #scanQuoted(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      // A doubled quote closes and reopens the quoted text.
      if (bytes[at] === quote) this.#inQuotes = !this.#inQuotes
      else if (bytes[at] === newline && !this.#inQuotes) this.#endRow(at)
    }
  }

  #endRow(at: number): void {
    this.rowCount++
    this.lastStart = this.lastEnd
    this.lastEnd = this.#offset + at + 1
  }
}
