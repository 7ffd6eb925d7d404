// Finds where JSON values start and end in a text: elements of lists, and consecutive objects, with or without a separator.
// Only counts brackets outside strings; validating a value is left to the parser. Source: docs/wire/import.md §1.9.

import { ascii } from '#core/ascii.ts'

const { lineFeed, blank, quote, comma, openBracket, backslash, closeBracket, openBrace, closeBrace } = ascii

export const byteOrderMark = Buffer.from('\ufeff')

/** A "word" is a value that is not a list, an object or a string, such as a number. */
type Place = 'before values' | 'between' | 'nested' | 'word' | 'rest of line'

export class JsonValues {
  #place: Place
  isInList: boolean
  /** Where the last value starts, counted from the end of the value before it; null if only separators were found. */
  valueStart: number | null = null
  /** Whether there was a value outside lists that is not an object. */
  hasOther = false
  #depth = 0
  #isText = false
  #isEscaped = false
  /**
   * Whether a line end closes every open value, so that a broken line does not affect the next lines. The first list or
   * object that is not empty decides this; null until then.
   */
  #isByLine: boolean | null
  /** Whether the open list, or the value outside lists, contains a line end. */
  #spansLines = false
  #isListEmpty = true
  /** Whether the current object outside lists contains a name. */
  #hasName = false
  #isLineBegin: boolean
  readonly #isFile: boolean

  /**
   * @param of `file`: the first list or object that is not empty shows whether there is one value per line; `line`: a
   * single line.
   * @param isInList whether it starts within a list.
   */
  constructor(of: 'file' | 'line', isInList = false) {
    this.#isFile = of === 'file'
    this.#place = this.#isFile ? 'before values' : 'between'
    this.#isByLine = this.#isFile ? null : true
    this.isInList = isInList
    this.#isLineBegin = !isInList
  }

  get isInValue(): boolean {
    return this.#place !== 'before values' && this.#place !== 'between'
  }

  /**
   * Finds the index after the next value, or after a list that was still open when the next line opened another list.
   * @param from the index returned last, or 0 in a new chunk. @param earlierBytes how many bytes since the previous end are
   * in earlier chunks.
   * @returns -1 if it is not in these bytes.
   */
  nextEnd(bytes: Uint8Array, from: number, earlierBytes = 0): number {
    if (!this.isInValue) this.valueStart = null
    for (let at = from; at < bytes.length; at++) {
      const unit = bytes[at]!
      switch (this.#place) {
        case 'nested':
          if (structuralBytes[unit] === 1) {
            if (unit === lineFeed && this.#isByLine === true) {
              this.#spansLines = true
              this.isInList = false
              return this.#end(at)
            }
            if (this.#stepNested(unit)) return this.#end(at + 1)
          } else if (this.#isEscaped) this.#isEscaped = false
          continue
        case 'word':
          if (unit <= blank || isPunctuation(unit)) return this.#end(at)
          continue
        case 'rest of line':
          if (unit === lineFeed) return this.#end(at)
          continue
        case 'before values':
          if (unit !== openBracket && unit !== openBrace) continue
          this.#place = 'between'
      }
      if (unit === openBracket && this.isInList && this.#isLineBegin && this.#isByLine === true) {
        this.isInList = false
        return at
      }
      if (this.#stepBetween(unit)) this.valueStart = earlierBytes + at - from
    }
    return -1
  }

  /** @returns whether a value begins. */
  #stepBetween(unit: number): boolean {
    if (unit === lineFeed) this.#spansLines = this.#isLineBegin = true
    if (unit <= blank || (this.#isLineBegin && unit >= firstBeyondAscii && byteOrderMark.includes(unit))) return false
    this.#isLineBegin = false
    if (unit === comma) return false
    if (unit === openBracket && !this.isInList) {
      this.isInList = this.#isListEmpty = true
      this.#spansLines = false
      return false
    }
    if (unit === closeBracket && this.isInList) {
      this.isInList = false
      if (!this.#isListEmpty) this.#isByLine ??= !this.#spansLines
      return false
    }
    if (!this.isInList) {
      this.#spansLines = false
      this.hasOther ||= unit !== openBrace
    }
    this.#isListEmpty = this.#hasName = false
    this.#isText = unit === quote
    this.#depth = unit === openBrace || unit === openBracket ? 1 : 0
    this.#place = this.#isText || this.#depth > 0 ? 'nested' : 'word'
    // The line has lost its beginning, so objects in it are not records of the file.
    if (this.#isFile && this.#isByLine === true && !this.isInList && unit !== openBrace) this.#place = 'rest of line'
    return true
  }

  /** @returns whether the value ends with this byte. */
  #stepNested(unit: number): boolean {
    if (unit === lineFeed) this.#spansLines = true
    if (this.#isText) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (unit === backslash) this.#isEscaped = true
      else if (unit === quote) this.#isText = false
      return !this.#isText && this.#depth === 0
    }
    if (unit === quote) this.#isText = this.#hasName = true
    else if (unit === openBrace || unit === openBracket) this.#depth++
    else if (unit === closeBrace || unit === closeBracket) return --this.#depth === 0
    return false
  }

  #end(at: number): number {
    if (!this.isInList && this.#hasName) this.#isByLine ??= !this.#spansLines
    this.#place = 'between'
    this.#isText = this.#isEscaped = false
    return at
  }
}

const firstBeyondAscii = 0x80

/** The bytes with a meaning within a list, an object or a string. */
const structuralBytes = new Uint8Array(256)
for (const unit of Buffer.from('\n"\\{}[]')) structuralBytes[unit] = 1

function isPunctuation(unit: number): boolean {
  return unit === comma || (unit !== lineFeed && unit !== backslash && structuralBytes[unit] === 1)
}
