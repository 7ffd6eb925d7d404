// Reads the records of a text file: lines of JSON, elements of JSON lists, or rows of CSV. Source: docs/wire/import.md §1.9,
// §2.6 (bytes, shape).

import { isUtf8 } from 'node:buffer'
import { ascii } from '#core/ascii.ts'
import { type CsvShape, plainCsv } from '#core/csv.ts'
import type { RejectReason } from '../records/imported-event.ts'
import { PackingDamage } from './byte-reader.ts'
import { detectCsvShape, isSeparatorLine } from './csv-shape.ts'
import { findLineValues } from './json-values.ts'
import { createReject, type ParsedRecord, parseCsvHeader, parseCsvRow, parseJsonLine } from './parse-record.ts'
import { parseTableName, type ReadRecord } from './read-record.ts'
import { type RawRecord, splitRecords } from './split-records.ts'
import type { UnpackedFile } from './unpacked-files.ts'

export type TextFormat = 'json' | 'array' | 'csv'

const { lineFeed, carriageReturn, blank, openBracket, openBrace } = ascii
const byteOrderMark = Buffer.from('\ufeff')
const markBytes = byteOrderMark.length
/** How much of a CSV file is examined to find out how its quotes are escaped. */
const sampledBytes = 1024 * 1024
/** How much blank space may precede the first record. */
const lookaheadBytes = 1024

/**
 * Detects the format of a text by its beginning. CSV has no distinctive beginning, so the file name decides if it has a known
 * extension, which keeps broken JSON from being read as CSV.
 */
export async function detectTextFormat({ object, bytes }: UnpackedFile): Promise<TextFormat> {
  const beginning = await bytes.peek(lookaheadBytes)
  const first = beginning.find((byte, at) => byte > blank && byteOrderMark[at] !== byte)
  if (first === openBracket) return 'array'
  if (/\.[ct]sv\b/i.test(object)) return 'csv'
  // An object over several lines, as `jq` and other programs format it.
  if (/^\{[ \t\r]*\n/.test(beginning.toString().replace('\ufeff', '').trimStart())) return 'array'
  return first === openBrace || /\.(?:json|jsonl|ndjson)\b/i.test(object) ? 'json' : 'csv'
}

export async function* readTextRecords(
  file: UnpackedFile,
  format: TextFormat,
  bytesMax?: number,
): AsyncGenerator<ReadRecord> {
  const { object, bytes, damage } = file
  const shape = format === 'csv' ? await detectCsvShape(bytes, sampledBytes) : plainCsv
  const { delimiter, hasEscapes } = shape
  const lineEnd = shape.rowEnd.charCodeAt(0)
  const rows = format === 'csv' ? createRowParser(shape) : null
  const parse = rows?.parse ?? (format === 'json' ? parseLine : parseElement)
  const sharedFields = {
    table: parseTableName(object),
    isJson: format !== 'csv',
    ...(delimiter !== ',' && { delimiter }),
    ...(hasEscapes && { hasEscapes }),
  }
  let end = { line: 1, byte: 0 }
  let isListOpen = false
  for await (const record of splitRecords(bytes, format === 'json' ? 'values' : format, bytesMax, shape)) {
    const { line, byte, cutLength } = record
    isListOpen = format === 'array' && record.value === null && record.ending === 'unclosed'
    for (const { start, bytes: valueBytes, parsed, isPart } of parse(record.bytes, record)) {
      const place = { line: line + countLines(record.bytes.subarray(0, start), lineEnd), byte: byte + start }
      end = { line: place.line + countLines(valueBytes, lineEnd), byte: place.byte + valueBytes.length }
      if (parsed === null) continue
      const isCutOff = isPart && 'rejected' in parsed && isTruncationReason(parsed.rejected.reason, valueBytes)
      const outcome = isCutOff ? createReject(damage()?.reason ?? 'truncated_record', damage()?.message) : parsed
      const columns = rows?.columns()
      yield {
        raw: { object, ...place },
        bytes: removeLineEnd(valueBytes, lineEnd),
        parsed: outcome,
        ...sharedFields,
        ...(columns && { columns }),
        ...(cutLength !== undefined && { cutLength: cutLength - start }),
      }
      // The reject of the truncated record already reports the damage.
      if (isCutOff) return
    }
  }
  const found = damage() ?? (isListOpen ? new PackingDamage('the list is not closed', 'truncated_record') : null)
  if (found === null) return
  const parsed = createReject(found.reason, found.message)
  yield { raw: { object, ...end }, bytes: Buffer.alloc(0), parsed, ...sharedFields }
}

/** A value in a RawRecord, which usually contains one. */
interface ParsedValue {
  /** Offset in the bytes of the RawRecord. */
  readonly start: number
  readonly bytes: Uint8Array
  /** Null for a value that is no record, such as the header of CSV. */
  readonly parsed: ParsedRecord | null
  /** Whether the file ended within it. */
  readonly isPart: boolean
}

/** A line is one record, unless it cannot be parsed as one and consists of lists of objects or of several objects. */
function parseLine(bytes: Uint8Array, record: RawRecord): readonly ParsedValue[] {
  const { isCut, ending, within = null } = record
  const isPart = ending === 'unended'
  const whole = { start: 0, bytes, parsed: isCut ? createReject('record_too_large') : parseJsonLine(bytes), isPart }
  if (isCut || (within === null && !('rejected' in whole.parsed))) return [whole]
  const { values, isListOpen, isLastOpen, hasOther } = parseValues(bytes, record)
  // Other values between objects show that the line has lost its beginning: each nested object would pass for a record.
  if (hasOther) return [whole]
  const isEmptyList = 'rejected' in whole.parsed && whole.parsed.rejected.reason === 'json_not_object'
  if (values.length === 0) return within !== null || isEmptyList ? [] : [whole]
  const isOneValue =
    values.length === 1 && values[0]!.bytes.length === Buffer.from(bytes).toString('latin1').trim().length
  if (isOneValue || !values.some(({ bytes: valueBytes }) => valueBytes[0] === openBrace)) return [whole]
  const last = values.at(-1)!
  const all = isPart && isLastOpen ? values.with(-1, { ...last, isPart }) : values
  const isLineEnd = isPart || bytes.at(-1) === lineFeed
  if (!isListOpen || !isLineEnd || isLastOpen) return all
  const unclosed = createReject('json_syntax', 'the list is not closed')
  return [...all, { start: last.start + last.bytes.length, bytes: Buffer.alloc(0), parsed: unclosed, isPart }]
}

function parseValues(bytes: Uint8Array, { byte, within }: RawRecord) {
  const markEnd = byte === 0 && byteOrderMark.equals(bytes.subarray(0, markBytes)) ? markBytes : 0
  const { ranges, isListOpen, isLastOpen } = findLineValues(bytes.subarray(markEnd), within === 'list')
  const values = ranges.map(({ start, end }): ParsedValue => {
    const valueBytes = bytes.subarray(markEnd + start, markEnd + end)
    return { start: markEnd + start, bytes: valueBytes, parsed: parseJsonLine(valueBytes), isPart: false }
  })
  const hasOther = ranges.some(({ start, isInList }) => !isInList && bytes[markEnd + start] !== openBrace)
  return { values, isListOpen, isLastOpen, hasOther }
}

function parseElement(all: Uint8Array, { isCut, ending, value = null }: RawRecord): readonly ParsedValue[] {
  const start = value ?? all.length
  const bytes = all.subarray(start)
  const [isPart, isComplete] = [ending === 'unclosed', ending === 'complete']
  if (isCut) return [{ start, bytes, parsed: createReject('record_too_large'), isPart }]
  if (value !== null)
    return [{ start, bytes, parsed: isComplete ? parseJsonLine(bytes) : createReject('json_syntax'), isPart }]
  if (!isComplete) return [{ start, bytes, parsed: null, isPart }]
  return [{ start: 0, bytes, parsed: createReject('json_syntax', 'the list is not closed'), isPart }]
}

function createRowParser({ delimiter, hasEscapes }: CsvShape) {
  let columns: readonly string[] | null = null
  let isHeaderBroken = false
  const parseRow = (bytes: Uint8Array, { isCut, ending, line }: RawRecord): ParsedRecord | null => {
    // No row can be read without column names.
    if (isHeaderBroken) return null
    if (isCut) return createReject('record_too_large')
    if (ending === 'unclosed') return createReject('csv_column_count')
    if (columns !== null) return parseCsvRow(bytes, columns, delimiter, hasEscapes)
    if (line === 1 && isSeparatorLine(bytes)) return null
    const header = parseCsvHeader(bytes, delimiter, hasEscapes)
    if ('columns' in header) {
      columns = header.columns
      return null
    }
    isHeaderBroken = true
    return header
  }
  return {
    parse: (bytes: Uint8Array, record: RawRecord): readonly ParsedValue[] => [
      { start: 0, bytes, parsed: parseRow(bytes, record), isPart: record.ending !== 'complete' },
    ],
    /** The names in the header; null before it is read. */
    columns: () => columns,
  }
}

/** Whether truncation can be the cause of this reject. */
function isTruncationReason(reason: RejectReason, bytes: Uint8Array): boolean {
  if (reason === 'encoding_invalid_utf8') return [1, 2, 3].some(count => isUtf8(bytes.subarray(0, -count)))
  return reason === 'json_syntax' || reason === 'csv_column_count'
}

function countLines(bytes: Uint8Array, lineEnd: number): number {
  let count = 0
  for (let at = bytes.indexOf(lineEnd); at >= 0; at = bytes.indexOf(lineEnd, at + 1)) count++
  return count
}

function removeLineEnd(bytes: Uint8Array, lineEnd: number): Uint8Array {
  if (bytes.at(-1) !== lineEnd) return bytes
  if (lineEnd !== lineFeed) return bytes.subarray(0, -1)
  let end = bytes.length - 1
  while (bytes[end - 1] === carriageReturn) end--
  return bytes.subarray(0, end)
}
