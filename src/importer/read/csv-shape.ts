// Detects the dialect of a CSV file from its beginning.

import { ascii } from '#core/ascii.ts'
import { type CsvDelimiter, type CsvRowEnd, type CsvShape, csvDelimiters, splitCsvRow } from '#core/csv.ts'
import type { ByteReader } from './byte-reader.ts'
import { createRowEndFinder } from './split-records.ts'

/** How many bytes of a header are examined. */
export const headerBytesMax = 64 * 1024
const { quote, carriageReturn } = ascii

/**
 * Looks at the reader's first bytes without taking them; waits for its first line only. @param sampledBytes how many bytes
 * to wait for instead, to find out from the rows how quotes are escaped.
 */
export async function detectCsvShape(reader: ByteReader, sampledBytes = 0): Promise<CsvShape> {
  const line = await reader.peekLine(headerBytesMax)
  const delimiter = detectCsvDelimiter(line)
  const isOpen = line.reduce((quotes, unit) => (unit === quote ? quotes + 1 : quotes), 0) % 2 === 1
  const beginning = isOpen ? await reader.peek(headerBytesMax) : line
  const rowEnd = detectRowEnd(beginning, delimiter)
  const plain: CsvShape = { delimiter, rowEnd, hasEscapes: false }
  const sample = sampledBytes > 0 ? await reader.peek(sampledBytes) : beginning
  if (!sample.includes('\\"')) return plain
  const escaped: CsvShape = { ...plain, hasEscapes: true }
  const isWhole = sample.length < sampledBytes
  return countFittingRows(sample, escaped, isWhole) > countFittingRows(sample, plain, isWhole) ? escaped : plain
}

/**
 * Spreadsheets use semicolons in locales with a decimal comma, and only the header of a file shows which delimiter it uses.
 * @param header the first line; more than that if the line ends in a lone carriage return. @returns the delimiter that
 * occurs most often outside quotes. If several delimiters occur equally often, the first is taken, so a header with one
 * column yields the comma.
 */
function detectCsvDelimiter(header: Buffer): CsvDelimiter {
  const counts = new Map<string, number>()
  let isQuoted = false
  for (const unit of header.toString('latin1')) {
    if (unit === '"') isQuoted = !isQuoted
    else if (unit === '\r' && !isQuoted) break
    else if (!isQuoted) counts.set(unit, (counts.get(unit) ?? 0) + 1)
  }
  return csvDelimiters.reduce((best, each) => ((counts.get(each) ?? 0) > (counts.get(best) ?? 0) ? each : best))
}

/**
 * How many rows have as many cells as the header in this dialect. In the wrong dialect, rows are split or swallowed by the
 * previous row, whereas a single odd quote changes only its own row.
 * @param isWhole whether the sample is the whole file, whose last row needs no line end.
 */
function countFittingRows(sample: Buffer, shape: CsvShape, isWhole: boolean): number {
  const { delimiter, hasEscapes } = shape
  const ends = createRowEndFinder(shape)
  let columnCount: number | null = null
  let fitting = 0
  for (let start = 0; start < sample.length; ) {
    const found = ends.next(sample, start)
    if (found < 0 && (!isWhole || ends.isOpen())) break
    const end = found < 0 ? sample.length : found
    const bytes = sample.subarray(start, end)
    const isHeading = start === 0 && isSeparatorLine(bytes)
    start = end
    if (isHeading) continue
    const row = bytes.toString().replace(/^\ufeff/, '')
    const count: number | undefined = splitCsvRow(row, delimiter, columnCount ?? Infinity, hasEscapes)?.length
    if (columnCount === null) columnCount = count!
    else if (count === columnCount) fitting++
  }
  return fitting
}

/** Whether this is Excel's first line `sep=;`. It needs no parsing: `detectCsvDelimiter` finds the delimiter in it. */
export function isSeparatorLine(bytes: Uint8Array): boolean {
  return bytes.length <= separatorLineBytesMax && separatorLine.test(Buffer.from(bytes).toString('latin1'))
}

/** May begin with the bytes of a UTF-8 byte order mark, since the line is decoded as Latin-1. */
const separatorLine = /^(?:\xef\xbb\xbf)?sep=[,;\t|]\r*\n?$/i
const separatorLineBytesMax = 20

/** Rows end in carriage returns only if the first line end outside quotes is a carriage return without a line feed. */
function detectRowEnd(beginning: Buffer, delimiter: CsvDelimiter): CsvRowEnd {
  let rowStart = createRowEndFinder({ delimiter, rowEnd: '\r', hasEscapes: false }).next(beginning, 0)
  if (rowStart < 0) return '\n'
  // A program that writes `\r\n` on Windows produces `\r\r\n`, since the system expands each line feed.
  while (beginning[rowStart] === carriageReturn) rowStart++
  const lineFeed = createRowEndFinder({ delimiter, rowEnd: '\n', hasEscapes: false }).next(beginning, 0)
  return lineFeed < 0 || rowStart < lineFeed - 1 ? '\r' : '\n'
}
