// Exports as JSON lines and as CSV.

import { formatInstant } from '#wire/management/shapes.ts'
import type { ExportColumn, ExportEncoder } from './export-column.ts'

/**
 * One JSON object per line, only rows: a last line that is not a row reports that the export broke off, and why. JSON
 * texts of clients are spliced in as they are, with the literals of their numbers and repeated keys.
 */
export function createJsonlEncoder<Row>(columns: readonly ExportColumn<Row>[]): ExportEncoder<Row> {
  const fields = columns.map(({ name, kind, read }, index) => {
    const key = `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`
    return { key, kind, read }
  })
  const encodeLine = (row: Row) => {
    let line = ''
    for (const { key, kind, read } of fields) line += key + encodeJsonValue(kind, read(row))
    return `${line}}\n`
  }
  return {
    contentType: 'application/x-ndjson',
    isText: true,
    begin: () => '',
    *encode(rows) {
      for (const row of rows) yield encodeLine(row)
    },
    *end() {},
    brokenOff: reason => `${JSON.stringify({ export_error: reason })}\n`,
  }
}

/** Encodes one value without line breaks. A client's JSON text has some if the client wrote it in several lines. */
function encodeJsonValue(kind: ExportColumn<unknown>['kind'], value: string | number | boolean | null): string {
  if (value === null) return 'null'
  if (kind === 'json') return replaceLineBreaks(value as string)
  if (kind === 'instant') return `"${formatInstant(value as number)}"`
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

/** JSON text has line breaks only between tokens, where a space means the same. */
function replaceLineBreaks(json: string): string {
  return json.includes('\n') || json.includes('\r') ? json.replaceAll(/[\r\n]/g, ' ') : json
}

/** RFC 4180: a header, commas, CRLF; values with a comma, a quote or a line break are quoted. */
export function createCsvEncoder<Row>(columns: readonly ExportColumn<Row>[]): ExportEncoder<Row> {
  const encodeRow = (row: Row) => {
    let line = ''
    for (const [index, { kind, read }] of columns.entries()) {
      if (index > 0) line += ','
      line += encodeCsvValue(kind, read(row))
    }
    return `${line}\r\n`
  }
  return {
    contentType: 'text/csv; charset=utf-8; header=present',
    isText: true,
    begin: () => `${columns.map(({ name }) => name).join(',')}\r\n`,
    *encode(rows) {
      for (const row of rows) yield encodeRow(row)
    },
    *end() {},
    brokenOff: () => null,
  }
}

/** A missing value becomes an empty field, and an empty text becomes `""`. */
function encodeCsvValue(kind: ExportColumn<unknown>['kind'], value: string | number | boolean | null): string {
  if (value === null) return ''
  if (kind === 'instant') return formatInstant(value as number)
  if (typeof value !== 'string') return String(value)
  return value === '' || /[",\r\n]/.test(value) || value.trim() !== value ? `"${value.replaceAll('"', '""')}"` : value
}
