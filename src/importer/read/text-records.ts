// The records of a text: lines of JSON, the elements of a JSON list, or rows of CSV. Source: docs/wire/import.md §1.9,
// §2.6 (bytes, shape).

import { isUtf8 } from 'node:buffer'
import { RecordReject, type RejectReason } from '../records/imported-event.ts'
import { type CsvShape, plainCsv } from './csv-cells.ts'
import { csvShape, isSeparatorLine } from './csv-shape.ts'
import { PackingDamage } from './decompress.ts'
import { type ParsedRecord, parseCsvHeader, parseCsvRow, parseJsonLine } from './parse-record.ts'
import type { ReadRecord } from './read-record.ts'
import { type RawRecord, splitRecords } from './split-records.ts'
import { tableOf } from './table-name.ts'
import type { UnpackedFile } from './unpacked-files.ts'

export type TextFormat = 'json' | 'array' | 'csv'

const newline = 0x0a
const blank = 0x20
const comma = 0x2c
const bracketOpen = 0x5b
const bracketClose = 0x5d
const byteOrderMark = Buffer.from('\ufeff')
const markBytes = byteOrderMark.length
/** How much of the beginning may be blank before the first record. */
const lookaheadBytes = 1024

/**
 * What a text holds, as its beginning shows. CSV has no beginning of its own, so the name decides when it tells something:
 * broken JSON is no CSV.
 */
export async function textFormat({ object, bytes }: UnpackedFile): Promise<TextFormat> {
  const first = (await bytes.peek(lookaheadBytes)).find((byte, at) => byte > blank && byteOrderMark[at] !== byte)
  if (first === bracketOpen) return 'array'
  if (/\.[ct]sv\b/i.test(object)) return 'csv'
  return first === 0x7b || /\.(?:json|jsonl|ndjson)\b/i.test(object) ? 'json' : 'csv'
}

export async function* textRecords(
  file: UnpackedFile,
  format: TextFormat,
  bytesMax?: number,
): AsyncGenerator<ReadRecord> {
  const { object, bytes, damage } = file
  const shape = format === 'csv' ? await csvShape(bytes) : plainCsv
  const { delimiter } = shape
  const lineEnd = shape.rowEnd.charCodeAt(0)
  const parsers = { json: lineParser, array: elementParser, csv: () => rowParser(shape) }
  const { parse, columns = () => null } = parsers[format]()
  const about = { table: tableOf(object), isJson: format !== 'csv', ...(delimiter !== ',' && { delimiter }) }
  let end = { line: 1, byte: 0 }
  let isListOpen = false
  for await (const record of splitRecords(bytes, format, bytesMax, shape)) {
    const { line, byte, bytes: own } = format === 'array' ? withoutSeparators(record) : record
    end = { line: line + linesIn(own, lineEnd), byte: byte + own.length }
    if (format === 'array' && own.length === 0) {
      isListOpen = record.ending === 'unclosed'
      continue
    }
    const parsed = parse(own, record)
    if (parsed === null) continue
    const isPart = record.ending === 'unclosed' || (record.ending === 'unended' && format !== 'array')
    const isCutOff = isPart && 'rejected' in parsed && isOfPart(parsed.rejected.reason, own)
    const outcome = isCutOff ? rejectOf(damage()?.reason ?? 'truncated_record', damage()?.message) : parsed
    const header = columns()
    const row = header === null ? about : { ...about, columns: header }
    yield { raw: { object, line, byte }, bytes: withoutLineEnd(own, lineEnd), parsed: outcome, ...row }
    // The reject of the part that was left says what became of the file.
    if (isCutOff) return
  }
  const found = damage() ?? (isListOpen ? new PackingDamage('truncated_record', 'the list is not closed') : null)
  if (found === null) return
  const parsed = rejectOf(found.reason, found.message)
  yield { raw: { object, ...end }, bytes: Buffer.alloc(0), parsed, ...about }
}

interface Parser {
  /** @returns null for what is no record, such as the header of CSV. */
  parse(bytes: Uint8Array, record: RawRecord): ParsedRecord | null
  /** The names in the header, once it was read. */
  columns?(): readonly string[] | null
}

function lineParser(): Parser {
  return { parse: (bytes, { isCut }) => (isCut ? tooLarge() : parseJsonLine(bytes)) }
}

function elementParser(): Parser {
  const parse: Parser['parse'] = (bytes, { isCut, ending }) => {
    if (isCut) return tooLarge()
    return ending === 'complete' ? parseJsonLine(bytes) : rejectOf('json_syntax')
  }
  return { parse }
}

function rowParser({ delimiter }: CsvShape): Parser {
  let columns: readonly string[] | null = null
  let isHeaderBroken = false
  const parse: Parser['parse'] = (bytes, { isCut, ending, line }) => {
    if (isHeaderBroken) return null
    if (isCut) return tooLarge()
    if (ending === 'unclosed') return rejectOf('csv_column_count')
    if (columns !== null) return parseCsvRow(bytes, columns, delimiter)
    if (line === 1 && isSeparatorLine(bytes)) return null
    const header = parseCsvHeader(bytes, delimiter)
    if ('columns' in header) {
      columns = header.columns
      return null
    }
    // Without the names of columns no row says anything.
    isHeaderBroken = true
    return header
  }
  return { parse, columns: () => columns }
}

/** Whether a record without its end can be wrong for this reason because it is only a part. */
function isOfPart(reason: RejectReason, bytes: Uint8Array): boolean {
  if (reason === 'encoding_invalid_utf8') return [1, 2, 3].some(count => isUtf8(bytes.subarray(0, -count)))
  return reason === 'json_syntax' || reason === 'csv_column_count'
}

/** An element with the place where it begins, without what separates it from those before and after. */
function withoutSeparators(record: RawRecord): { line: number; byte: number; bytes: Uint8Array } {
  const { bytes } = record
  let start = record.byte === 0 && byteOrderMark.equals(bytes.subarray(0, markBytes)) ? markBytes : 0
  if (record.byte === 0) while (start < bytes.length && bytes[start]! <= blank) start++
  if (record.byte === 0 && bytes[start] === bracketOpen) start++
  const isBetween = (unit: number | undefined) => unit !== undefined && (unit <= blank || unit === comma)
  while (isBetween(bytes[start]) || (record.ending !== 'complete' && bytes[start] === bracketClose)) start++
  let end = bytes.length
  // Only a number or a word ends at what follows it.
  if (/[^{["]/.test(String.fromCharCode(bytes[start] ?? 0)))
    while (end > start && (isBetween(bytes[end - 1]) || bytes[end - 1] === bracketClose)) end--
  return {
    line: record.line + linesIn(bytes.subarray(0, start), newline),
    byte: record.byte + start,
    bytes: bytes.subarray(start, end),
  }
}

function rejectOf(reason: RejectReason, detail?: string): ParsedRecord {
  return new RecordReject(reason, null, detail).outcome()
}

function tooLarge(): ParsedRecord {
  return rejectOf('record_too_large')
}

function linesIn(bytes: Uint8Array, lineEnd: number): number {
  let count = 0
  for (let at = bytes.indexOf(lineEnd); at >= 0; at = bytes.indexOf(lineEnd, at + 1)) count++
  return count
}

function withoutLineEnd(bytes: Uint8Array, lineEnd: number): Uint8Array {
  if (bytes.at(-1) !== lineEnd) return bytes
  if (lineEnd !== newline) return bytes.subarray(0, -1)
  let end = bytes.length - 1
  while (bytes[end - 1] === 0x0d) end--
  return bytes.subarray(0, end)
}
