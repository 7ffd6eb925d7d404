// Cuts the bytes of a file into its lines or rows, wherever its chunks end, and says where each stands.
// Source: docs/wire/import.md §1.9, §2.6.

import { type CsvShape, mayClose, plainCsv } from './csv-cells.ts'
import { JsonValues } from './json-values.ts'

export interface RawRecord {
  /** With its line end, where it has one. An element of a list has all before it that separates it from the last. */
  readonly bytes: Uint8Array
  /** The line in which it begins, from 1. A row of CSV may span several. */
  readonly line: number
  /** Where its first byte is, from 0. */
  readonly byte: number
  /** The file ended before a line end came, or before a quote or the list was closed. */
  readonly ending: 'complete' | 'unended' | 'unclosed'
  /** Only its beginning is kept, because it is longer than any record may be. */
  readonly isCut: boolean
  /** How many bytes one that is cut has in the file. */
  readonly cutLength?: number
  /** Where the value begins in the bytes of an element; null where only something that separates elements was left. */
  readonly value?: number | null
  /** A part of a line that does not begin it: whether a list is open in which it begins. Null for others. */
  readonly within?: 'line' | 'list' | null | undefined
}

/** Far more than an event may have: one record of Matomo is a whole visit. */
export const recordBytesMax = 64 * 1024 * 1024
/** A value takes tens of bytes once it is parsed: a record of empty lists alone would take thirty times its bytes. */
export const recordValuesMax = 1_000_000
const keptOfCutBytes = 64 * 1024

/** A line of JSON that is longer may end where a value in it does, long before it is too long for a record. */
const lineBytesMax = 1024 * 1024

const newline = 0x0a
const quote = 0x22
const backslash = 0x5c
const braceOpen = 0x7b
const byteOrderMark = Buffer.from('\ufeff')

export async function* splitRecords(
  chunks: AsyncIterable<Uint8Array>,
  format: 'json' | 'values' | 'csv' | 'array',
  bytesMax = recordBytesMax,
  shape = plainCsv,
): AsyncGenerator<RawRecord> {
  const createValueFinder = () => valueLineEnds(Math.min(lineBytesMax, bytesMax >> 2))
  const findEnd = { json: lineEnds, values: createValueFinder, csv: () => rowEnds(shape), array: elementEnds }[format]()
  const lineEnd = format === 'csv' ? shape.rowEnd.charCodeAt(0) : newline
  let parts: Uint8Array[] = []
  let partsBytes = 0
  let [line, byte, length, linesWithin] = [1, 0, 0, 0]
  const keep = (part: Uint8Array) => {
    length += part.length
    for (let at = part.indexOf(lineEnd); at >= 0; at = part.indexOf(lineEnd, at + 1)) linesWithin++
    if (length > bytesMax) {
      if (partsBytes > keptOfCutBytes) parts = [Uint8Array.from(Buffer.concat(parts).subarray(0, keptOfCutBytes))]
      partsBytes = Math.min(partsBytes, keptOfCutBytes)
      part = part.subarray(0, keptOfCutBytes - partsBytes)
      // Even an empty part would keep the memory of its chunk.
      if (part.length === 0) return
    }
    parts.push(part)
    partsBytes += part.length
  }
  const take = (ending: RawRecord['ending']): RawRecord => {
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    const isCut = length > bytesMax
    const record = { bytes, line, byte, ending, isCut, ...(isCut && { cutLength: length }), ...findEnd.taken?.() }
    line += linesWithin
    byte += length
    parts = []
    partsBytes = length = linesWithin = 0
    return record
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = findEnd.next(chunk, 0); end >= 0; end = findEnd.next(chunk, start)) {
      keep(chunk.subarray(start, end))
      start = end
      yield take('complete')
    }
    // The chunk may be filled again by who reads the file.
    if (start < chunk.length) keep(Uint8Array.from(chunk.subarray(start)))
  }
  // An open list is one also where its last element is complete.
  if (length > 0 || (format === 'array' && findEnd.isOpen())) yield take(findEnd.isOpen() ? 'unclosed' : 'unended')
}

export interface EndFinder {
  /** @returns where the record that goes on at `from` ends, and the next begins; -1 when the chunk has no end. */
  next(chunk: Uint8Array, from: number): number
  /** Whether a quote, a value or the list is open. */
  isOpen(): boolean
  /** What there is to say of the record that ended last; it is asked once for each. */
  taken?(): Pick<RawRecord, 'value' | 'within'>
}

function lineEnds(): EndFinder {
  const next: EndFinder['next'] = (chunk, from) => chunk.indexOf(newline, from) + 1 || -1
  return { next, isOpen: () => false }
}

/** Line ends between quotes belong to their cell. A quote counts only at the beginning of one, as in `csvCells`. */
export function rowEnds({ delimiter, rowEnd, hasEscapes }: CsvShape): EndFinder {
  const [between, end] = [delimiter.charCodeAt(0), rowEnd.charCodeAt(0)]
  let place: 'beginning' | 'plain' | 'quoted' | 'escaped' | 'behind quote' | 'behind escaped quote' = 'beginning'
  /** How much of a byte order mark was read. */
  let markBytes = 0
  const stepQuoted = (unit: number): void => {
    if (unit === quote) place = 'behind quote'
    else if (unit === backslash) place = 'escaped'
  }
  const step = (unit: number): boolean => {
    switch (place) {
      case 'quoted':
        stepQuoted(unit)
        return false
      case 'escaped':
        place = unit === quote && !hasEscapes ? 'behind escaped quote' : 'quoted'
        return false
      case 'behind escaped quote':
        if (!mayClose(String.fromCharCode(unit), delimiter)) {
          place = 'quoted'
          stepQuoted(unit)
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
    next: (chunk, from) => {
      for (let at = from; at < chunk.length; at++) if (step(chunk[at]!)) return at + 1
      return -1
    },
    isOpen: () => place === 'quoted' || place === 'escaped',
  }
}

/** Elements of JSON lists, and objects between and behind them, which may stand on any number of lines. */
function elementEnds(): EndFinder {
  const values = JsonValues.ofFile()
  let lookedBytes = 0
  let leadBytes: number | null = null
  const next: EndFinder['next'] = (chunk, from) => {
    let found = values.next(chunk, from)
    if (found.step === 'begins') {
      leadBytes = lookedBytes + found.at - from
      found = values.next(chunk, found.at + 1)
    }
    lookedBytes = found.step === 'ends' ? 0 : lookedBytes + chunk.length - from
    return found.step === 'ends' ? found.at : -1
  }
  const takeLeadBytes = () => {
    const value = leadBytes
    leadBytes = null
    return { value }
  }
  return { next, taken: takeLeadBytes, isOpen: () => values.isInList || values.isInValue }
}

/**
 * Lines, as whatever they hold; one that is longer than that ends as well where a value in it does, so that a file without
 * any line end is no single record. From where it holds anything but lists and objects it has no more ends: it may have lost
 * its beginning, and what lists in it hold would pass for records.
 */
function valueLineEnds(lineBytesMax: number): EndFinder {
  /** Set while a line is read byte by byte. */
  let values: JsonValues | null = null
  let lookedBytes = 0
  let within: RawRecord['within'] = null
  let isFirstLine = true
  let isBroken = false
  const isOther = (unit: number) => unit !== braceOpen && !(isFirstLine && unit === byteOrderMark[0])
  const resetAtEnd = (end: number, isLineEnd: boolean): number => {
    if (isLineEnd) values = null
    if (isLineEnd) isFirstLine = isBroken = false
    lookedBytes = 0
    return end
  }
  const next: EndFinder['next'] = (chunk, from) => {
    const lineEnd = chunk.indexOf(newline, from)
    if (values === null && lineEnd >= 0 && lineEnd - from < lineBytesMax) return resetAtEnd(lineEnd + 1, true)
    values ??= JsonValues.ofLine()
    const line = lineEnd < 0 ? chunk : chunk.subarray(0, lineEnd)
    for (let at = from; at < line.length && !isBroken; ) {
      const found = values.next(line, at)
      if (found.step === 'ends' && lookedBytes + found.at - from > lineBytesMax) return resetAtEnd(found.at, false)
      at = found.step === 'begins' ? found.at + 1 : found.at
      isBroken = found.step === 'begins' && !values.isInList && isOther(line[found.at]!)
    }
    if (lineEnd >= 0) return resetAtEnd(lineEnd + 1, true)
    lookedBytes += chunk.length - from
    return -1
  }
  const takeLeadBytes = () => {
    const place = { within }
    within = values === null ? null : values.isInList ? 'list' : 'line'
    return place
  }
  return { next, taken: takeLeadBytes, isOpen: () => false }
}
