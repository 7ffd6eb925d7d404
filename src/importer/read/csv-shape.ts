// How the rows of a CSV file are written, which nothing in it says but its beginning.

import type { ByteReader } from './byte-reader.ts'
import { type CsvDelimiter, type CsvRowEnd, type CsvShape, csvDelimiter } from './csv-cells.ts'
import { rowEnds } from './split-records.ts'

/** How much of a header is looked at. */
export const headerBytesMax = 64 * 1024
const quote = 0x22

/** Takes nothing from the reader, and waits for no more than its first line. */
export async function csvShape(reader: ByteReader): Promise<CsvShape> {
  const line = await reader.peekLine(headerBytesMax)
  const delimiter = csvDelimiter(line)
  const isOpen = line.reduce((quotes, unit) => (unit === quote ? quotes + 1 : quotes), 0) % 2 === 1
  const beginning = isOpen ? await reader.peek(headerBytesMax) : line
  return { delimiter, rowEnd: rowEndIn(beginning, delimiter) }
}

/** Only a first line end outside of quotes that is a carriage return alone says that all are. */
function rowEndIn(beginning: Buffer, delimiter: CsvDelimiter): CsvRowEnd {
  const carriageReturn = rowEnds({ delimiter, rowEnd: '\r' }).next(beginning, 0)
  const lineFeed = rowEnds({ delimiter, rowEnd: '\n' }).next(beginning, 0)
  const isFirst = carriageReturn >= 0 && (lineFeed < 0 || carriageReturn < lineFeed - 1)
  return isFirst ? '\r' : '\n'
}
