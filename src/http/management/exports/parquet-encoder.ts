// Exports as Parquet. The footer of a file describes every row group, and these descriptions stay in memory until the file
// ends. So a file ends after a limited number of groups, and the response names the cursor from which the next file starts.

import type { OpenParquetFile, ParquetFile, ParquetValue } from '#ports/parquet-files.ts'
import type { ExportColumn, ExportEncoder } from '#wire/exports/export-column.ts'

export interface ParquetLimits {
  /** The number of characters, and of rows, after which a row group ends. */
  readonly groupCharsMax: number
  readonly groupRowsMax: number
  readonly groupCountMax: number
}

const usualLimits: ParquetLimits = { groupCharsMax: 16 * 1024 * 1024, groupRowsMax: 100_000, groupCountMax: 2_000 }
/** Rows sent to the thread in one message, which takes about a millisecond. */
const rowsPerMessage = 200
const messageCharsMax = 1024 * 1024

export function createParquetEncoder<Row>(
  columns: readonly ExportColumn<Row>[],
  openFile: OpenParquetFile,
  limits: ParquetLimits = usualLimits,
): ExportEncoder<Row> {
  let file: ParquetFile | null = null
  let groupCount = 0
  let rowCount = 0
  let chars = 0
  const getOrOpenEncoder = () => {
    file ??= openFile(columns)
    return file
  }
  let values: ParquetValue[][] = columns.map(() => [])
  let messageChars = 0
  const flushValues = () => {
    getOrOpenEncoder().add(values)
    chars += messageChars
    values = columns.map(() => [])
    messageChars = 0
  }
  const endGroup = async () => {
    groupCount++
    rowCount = chars = 0
    return getOrOpenEncoder().endGroup()
  }
  return {
    contentType: 'application/vnd.apache.parquet',
    isText: false,
    begin: () => '',
    async *encode(rows) {
      for (const row of rows) {
        for (const [index, { read }] of columns.entries()) {
          const value = read(row)
          values[index]!.push(value)
          if (typeof value === 'string') messageChars += value.length
        }
        rowCount++
        if (values[0]!.length < rowsPerMessage && messageChars < messageCharsMax) continue
        flushValues()
        yield ''
        if (chars >= limits.groupCharsMax || rowCount >= limits.groupRowsMax) yield await endGroup()
      }
    },
    async *end(next) {
      flushValues()
      yield await getOrOpenEncoder().end({
        'pennon.export.complete': String(next === null),
        ...(next !== null && { 'pennon.export.next': next }),
      })
    },
    brokenOff: () => null,
    isFull: () => groupCount >= limits.groupCountMax,
    close: () => file?.close(),
  }
}
