// Splits the chunks of a file into lines, rows or list elements, with their positions.
// Source: docs/wire/import.md §1.9, §2.6.

import { ascii } from '#core/ascii.ts'
import { type CsvShape, canQuoteCloseCell, plainCsv } from '#core/csv.ts'
import { byteOrderMark, JsonValues } from './json-values.ts'

export interface RawRecord {
  /** The record's bytes, including its line end or, for an element of a list, the separator before it. */
  readonly bytes: Uint8Array
  /** The line in which it starts, from 1. A row of CSV may span several. */
  readonly line: number
  /** Offset of its first byte, from 0. */
  readonly byte: number
  /** `unended`: the file ended without a line end; `unclosed`: with an open quote or list. */
  readonly ending: 'complete' | 'unended' | 'unclosed'
  /** Its size in the file if `bytes` is only its beginning, because it is too long for a record; null otherwise. */
  readonly cutLength: number | null
  /** For an element: offset of the value in `bytes`; null if only separators were left. */
  readonly value?: number | null
  /**
   * For a later part of a long line: `list` if the part starts within an open list, otherwise `line`. Null for other
   * records.
   */
  readonly within?: 'line' | 'list' | null
}

/** Far more than an event may have, since a Matomo record is a whole visit. */
export const recordBytesMax = 64 * 1024 * 1024
/** A parsed value takes tens of bytes of memory: a record of empty lists would take thirty times its own size. */
export const recordValuesMax = 1_000_000
const keptOfCutBytes = 64 * 1024

/** A longer line of JSON is split where a value in it ends, long before it is too long for a record. */
const lineBytesMax = 1024 * 1024

const { lineFeed, quote, backslash } = ascii

export async function* splitRecords(
  chunks: AsyncIterable<Uint8Array>,
  format: 'json' | 'values' | 'csv' | 'array',
  bytesMax = recordBytesMax,
  shape = plainCsv,
): AsyncGenerator<RawRecord> {
  const findEnd: EndFinder = {
    json: (): EndFinder => ({ next: (chunk, from) => chunk.indexOf(lineFeed, from) + 1 || -1, isOpen: () => false }),
    values: () => createValueLineEndFinder(Math.min(lineBytesMax, bytesMax >> 2)),
    csv: () => createRowEndFinder(shape),
    array: createElementEndFinder,
  }[format]()
  const lineEnd = format === 'csv' ? shape.rowEnd.charCodeAt(0) : lineFeed
  let parts: Uint8Array[] = []
  let partsBytes = 0
  let [line, byte, length, linesWithin] = [1, 0, 0, 0]
  const addPart = (part: Uint8Array) => {
    length += part.length
    linesWithin += countLineEnds(part, lineEnd)
    if (length > bytesMax) {
      if (partsBytes > keptOfCutBytes) parts = [Uint8Array.from(Buffer.concat(parts).subarray(0, keptOfCutBytes))]
      partsBytes = Math.min(partsBytes, keptOfCutBytes)
      part = part.subarray(0, keptOfCutBytes - partsBytes)
      // Does not store an empty part, since even that would keep its chunk in memory.
      if (part.length === 0) return
    }
    parts.push(part)
    partsBytes += part.length
  }
  const takeRecord = (ending: RawRecord['ending']): RawRecord => {
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    const cutLength = length > bytesMax ? length : null
    const record = { bytes, line, byte, ending, cutLength, ...findEnd.takePlace?.() }
    line += linesWithin
    byte += length
    parts = []
    partsBytes = length = linesWithin = 0
    return record
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = findEnd.next(chunk, 0, length); end >= 0; end = findEnd.next(chunk, start, 0)) {
      addPart(chunk.subarray(start, end))
      start = end
      yield takeRecord('complete')
    }
    // Copied, since the reader of the file may reuse the chunk.
    if (start < chunk.length) addPart(Uint8Array.from(chunk.subarray(start)))
  }
  // A list can be open even if its last element is complete.
  if (length > 0 || (format === 'array' && findEnd.isOpen()))
    yield takeRecord(findEnd.isOpen() ? 'unclosed' : 'unended')
}

export function countLineEnds(bytes: Uint8Array, lineEnd: number): number {
  let count = 0
  for (let at = bytes.indexOf(lineEnd); at >= 0; at = bytes.indexOf(lineEnd, at + 1)) count++
  return count
}

interface EndFinder {
  /**
   * @param earlierBytes how much of the record is in earlier chunks.
   * @returns where the record that continues at `from` ends and the next one starts; -1 if not in this chunk.
   */
  next(chunk: Uint8Array, from: number, earlierBytes: number): number
  /** Whether a quote, a value or the list is open. */
  isOpen(): boolean
  /** Returns the last record's `value` and `within`. Called once per record. */
  takePlace?(): Pick<RawRecord, 'value' | 'within'>
}

/** Line ends within quotes belong to their cell. A quote only has a meaning at the start of a cell, as in `splitCsvRow`. */
export function createRowEndFinder({ delimiter, rowEnd, hasEscapes }: CsvShape) {
  const [between, end] = [delimiter.charCodeAt(0), rowEnd.charCodeAt(0)]
  let place: 'beginning' | 'plain' | 'quoted' | 'escaped' | 'behind quote' | 'behind escaped quote' = 'beginning'
  /** How many bytes of a byte order mark were read. */
  let markBytes = 0
  const consumeQuoted = (unit: number): void => {
    if (unit === quote) place = 'behind quote'
    else if (unit === backslash) place = 'escaped'
  }
  const consumeUnit = (unit: number): boolean => {
    switch (place) {
      case 'quoted':
        consumeQuoted(unit)
        return false
      case 'escaped':
        place = unit === quote && !hasEscapes ? 'behind escaped quote' : 'quoted'
        return false
      case 'behind escaped quote':
        if (!canQuoteCloseCell(String.fromCharCode(unit), delimiter)) {
          place = 'quoted'
          consumeQuoted(unit)
          return false
        }
        break
      default:
        if (markBytes < byteOrderMark.length && unit === byteOrderMark[markBytes]) {
          markBytes++
          return false
        }
    }
    markBytes = byteOrderMark.length
    if (unit === quote && place !== 'plain') place = 'quoted'
    else place = unit === between || unit === end ? 'beginning' : 'plain'
    return unit === end
  }
  return {
    next: (chunk: Uint8Array, from: number) => {
      for (let at = from; at < chunk.length; at++) if (consumeUnit(chunk[at]!)) return at + 1
      return -1
    },
    isOpen: () => place === 'quoted' || place === 'escaped',
  }
}

/** Elements of JSON lists, and objects between and after lists, each on any number of lines. */
function createElementEndFinder(): EndFinder {
  const values = new JsonValues('file')
  return {
    next: (chunk, from, earlierBytes) => values.nextEnd(chunk, from, earlierBytes),
    takePlace: () => ({ value: values.valueStart }),
    isOpen: () => values.isInList || values.isInValue,
  }
}

/**
 * Lines of any content. A line longer than `lineBytesMax` is also split where a value in it ends, so that a file without
 * line ends is not a single record. The line is split only after lists and objects. After any other value it is not split,
 * since the line may have lost its beginning: elements of nested lists would then be taken for records.
 */
function createValueLineEndFinder(lineBytesMax: number): EndFinder {
  /** Not null while a long line is read byte by byte. */
  let values: JsonValues | null = null
  let within: 'line' | 'list' | null = null
  const next: EndFinder['next'] = (chunk, from, earlierBytes) => {
    const lineEnd = chunk.indexOf(lineFeed, from)
    if (values === null && lineEnd >= 0 && lineEnd - from < lineBytesMax) return lineEnd + 1
    values ??= new JsonValues('line')
    const line = lineEnd < 0 ? chunk : chunk.subarray(0, lineEnd)
    for (let end = from; !values.hasOther; ) {
      end = values.nextEnd(line, end)
      if (end < 0) break
      if (!values.hasOther && earlierBytes + end - from > lineBytesMax) return end
    }
    if (lineEnd >= 0) values = null
    return lineEnd + 1 || -1
  }
  const takePlace = () => {
    const place = { within }
    within = values === null ? null : values.isInList ? 'list' : 'line'
    return place
  }
  return { next, takePlace, isOpen: () => false }
}
