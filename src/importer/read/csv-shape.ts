// How the rows of a CSV file are written, which nothing in it says but its beginning.

import type { ByteReader } from './byte-reader.ts'
import { type CsvDelimiter, type CsvRowEnd, type CsvShape, csvCells, csvDelimiter } from './csv-cells.ts'
import { rowEnds } from './split-records.ts'

/** How much of a header is looked at. */
export const headerBytesMax = 64 * 1024
const quote = 0x22
const returnByte = 0x0d

/**
 * Takes nothing from the reader, and waits for no more than its first line.
 * @param sampledBytes wait for so many, where only rows may show how their quotes are written.
 */
export async function csvShape(reader: ByteReader, sampledBytes = 0): Promise<CsvShape> {
  const line = await reader.peekLine(headerBytesMax)
  const delimiter = csvDelimiter(line)
  const isOpen = line.reduce((quotes, unit) => (unit === quote ? quotes + 1 : quotes), 0) % 2 === 1
  const beginning = isOpen ? await reader.peek(headerBytesMax) : line
  const rowEnd = rowEndIn(beginning, delimiter)
  const plain: CsvShape = { delimiter, rowEnd, hasEscapes: false }
  const sample = sampledBytes > 0 ? await reader.peek(sampledBytes) : beginning
  if (!sample.includes('\\"')) return plain
  const escaped: CsvShape = { ...plain, hasEscapes: true }
  const isWhole = sample.length < sampledBytes
  return fittingRows(sample, escaped, isWhole) > fittingRows(sample, plain, isWhole) ? escaped : plain
}

/**
 * How many rows have as many cells as the header when the file is read like this. Read in the wrong way, rows break
 * apart or vanish into the one before, whereas a single odd quote changes only its own row.
 * @param isWhole whether the sample is the whole file, whose last row needs no line end.
 */
function fittingRows(sample: Buffer, shape: CsvShape, isWhole: boolean): number {
  const ends = rowEnds(shape)
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
    const count: number | undefined = csvCells(row, shape.delimiter, columnCount ?? Infinity, shape.hasEscapes)?.length
    if (columnCount === null) columnCount = count!
    else if (count === columnCount) fitting++
  }
  return fitting
}

/** Excel says in a first line what is between the cells, which counting what stands in that line has found already. */
export function isSeparatorLine(bytes: Uint8Array): boolean {
  return bytes.length <= separatorLineBytesMax && separatorLine.test(Buffer.from(bytes).toString('latin1'))
}

/** Also with a byte order mark, as its bytes read in Latin-1. */
const separatorLine = /^(?:\xef\xbb\xbf)?sep=[,;\t|]\r*\n?$/i
const separatorLineBytesMax = 20

/** Only a first line end outside of quotes that is a carriage return alone says that all are. */
function rowEndIn(beginning: Buffer, delimiter: CsvDelimiter): CsvRowEnd {
  let behind = rowEnds({ delimiter, rowEnd: '\r', hasEscapes: false }).next(beginning, 0)
  if (behind < 0) return '\n'
  // What a program that writes both on Windows leaves, where the system makes two bytes of each line feed.
  while (beginning[behind] === returnByte) behind++
  const lineFeed = rowEnds({ delimiter, rowEnd: '\n', hasEscapes: false }).next(beginning, 0)
  return lineFeed < 0 || behind < lineFeed - 1 ? '\r' : '\n'
}
