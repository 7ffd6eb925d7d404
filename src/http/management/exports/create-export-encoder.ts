// Chooses the encoder of a format.

import type { OpenParquetFile } from '#ports/parquet-files.ts'
import type { ExportColumn, ExportEncoder, ExportFormat } from '#wire/exports/export-column.ts'
import { csvEncoder, jsonlEncoder } from '#wire/exports/text-formats.ts'
import { createParquetEncoder } from './parquet-encoder.ts'

export function createExportEncoder<Row>(
  format: ExportFormat,
  columns: readonly ExportColumn<Row>[],
  openParquetFile: OpenParquetFile,
): ExportEncoder<Row> {
  switch (format) {
    case 'jsonl':
      return jsonlEncoder(columns)
    case 'csv':
      return csvEncoder(columns)
    case 'parquet':
      return createParquetEncoder(columns, openParquetFile)
  }
}
