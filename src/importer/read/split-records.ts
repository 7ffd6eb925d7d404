// Cuts the bytes of a file into its lines or rows, wherever its chunks end, and says where each stands.
// Source: docs/wire/import.md §1.9, §2.6.

import { type CsvShape, plainCsv } from './csv-cells.ts'

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
}

/** Far more than an event may have: one record of Matomo is a whole visit. */
export const recordBytesMax = 64 * 1024 * 1024
/** A value takes tens of bytes once it is parsed: a record of empty lists alone would take thirty times its bytes. */
export const recordValuesMax = 1_000_000
const keptOfCutBytes = 64 * 1024

const newline = 0x0a
const quote = 0x22
const comma = 0x2c
const blank = 0x20
const backslash = 0x5c
const [braceOpen, braceClose] = [0x7b, 0x7d]
const [bracketOpen, bracketClose] = [0x5b, 0x5d]

export async function* splitRecords(
  chunks: AsyncIterable<Uint8Array>,
  format: 'json' | 'csv' | 'array',
  bytesMax = recordBytesMax,
  shape = plainCsv,
): AsyncGenerator<RawRecord> {
  const findEnd = { json: lineEnds, csv: () => rowEnds(shape), array: elementEnds }[format]()
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
    const record = { bytes, line, byte, ending, isCut: length > bytesMax }
    line += linesWithin
    byte += length
    parts = []
    partsBytes = length = linesWithin = 0
    return record
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = findEnd.next(chunk, 0); end >= 0; end = findEnd.next(chunk, start)) {
      keep(chunk.subarray(start, end + 1))
      start = end + 1
      yield take('complete')
    }
    // The chunk may be filled again by who reads the file.
    if (start < chunk.length) keep(Uint8Array.from(chunk.subarray(start)))
  }
  // An open list is one also where its last element is complete.
  if (length > 0 || (format === 'array' && findEnd.isOpen())) yield take(findEnd.isOpen() ? 'unclosed' : 'unended')
}

export interface EndFinder {
  /** @returns where the next line end is that ends a record, at or after `from`; -1 when the chunk has none. */
  next(chunk: Uint8Array, from: number): number
  /** Whether a quote, or the list, is open. */
  isOpen(): boolean
}

function lineEnds(): EndFinder {
  return { next: (chunk, from) => chunk.indexOf(newline, from), isOpen: () => false }
}

/** Line ends between quotes belong to their cell. A quote counts only at the beginning of one, as in `csvCells`. */
export function rowEnds({ delimiter, rowEnd }: CsvShape): EndFinder {
  const [between, end] = [delimiter.charCodeAt(0), rowEnd.charCodeAt(0)]
  let place: 'beginning' | 'plain' | 'quoted' | 'behind quote' = 'beginning'
  const step = (unit: number): boolean => {
    if (place === 'quoted') {
      if (unit === quote) place = 'behind quote'
      return false
    }
    if (unit === quote && place !== 'plain') place = 'quoted'
    else place = unit === between || unit === end ? 'beginning' : 'plain'
    return unit === end
  }
  return {
    next: (chunk, from) => {
      for (let at = from; at < chunk.length; at++) if (step(chunk[at]!)) return at
      return -1
    },
    isOpen: () => place === 'quoted',
  }
}

/** Elements of one JSON list, which may stand on any number of lines. What follows the list is one more record. */
function elementEnds(): EndFinder {
  let place: 'before list' | 'between' | 'inside' | 'behind list' = 'before list'
  let depth = 0
  let isText = false
  let isEscaped = false
  const stepInText = (unit: number): boolean => {
    if (isEscaped) isEscaped = false
    else if (unit === backslash) isEscaped = true
    else if (unit === quote) isText = false
    return !isText && depth === 0
  }
  const stepInside = (unit: number): boolean => {
    if (isText) return stepInText(unit)
    if (unit === quote) isText = true
    else if (unit === braceOpen || unit === bracketOpen) depth++
    else if (unit === braceClose || unit === bracketClose) depth--
    else if (depth > 0) return false
    if (depth < 0) place = 'behind list'
    return depth < 0 || (depth === 0 && (unit === comma || unit === braceClose || unit === bracketClose))
  }
  const step = (unit: number): boolean => {
    if (place === 'before list' && unit === bracketOpen) place = 'between'
    else if (place === 'between' && unit === bracketClose) place = 'behind list'
    else if (place === 'inside' || (place === 'between' && unit > blank && unit !== comma)) {
      place = 'inside'
      if (stepInside(unit)) {
        depth = 0
        if (place === 'inside') place = 'between'
        return true
      }
    }
    return false
  }
  return {
    next: (chunk, from) => {
      for (let at = from; at < chunk.length; at++) if (step(chunk[at]!)) return at
      return -1
    },
    isOpen: () => place !== 'behind list',
  }
}
