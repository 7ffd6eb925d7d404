// Reads the records of a text file: lines of JSON, elements of JSON lists, or rows of CSV. Source: docs/wire/import.md §1.9,
// §2.6 (bytes, shape).

import { isUtf8 } from 'node:buffer'
import { ascii } from '#core/ascii.ts'
import { type CsvShape, plainCsv } from '#core/csv.ts'
import type { RecordRejectReason } from '../records/imported-event.ts'
import { CompressionDamage } from './byte-reader.ts'
import { detectCsvShape, isSeparatorLine } from './csv-shape.ts'
import { byteOrderMark, JsonValues } from './json-values.ts'
import {
  type CsvHeader,
  createParseReject,
  type ParsedSourceRecord,
  parseCsvHeader,
  parseCsvRow,
  parseJsonLine,
} from './parse-record.ts'
import { createDamagedRecord, parseTableName, type RawPosition, type ReadRecord } from './read-record.ts'
import { countLineEnds, type RawRecord, splitRecords } from './split-records.ts'
import type { UnpackedFile } from './unpacked-files.ts'

export type TextFormat = 'json' | 'array' | 'csv'

const { lineFeed, carriageReturn, blank, openBracket, openBrace } = ascii
/** How many bytes of a CSV file are examined to find out how its quotes are escaped. */
const sampledBytes = 1024 * 1024
/** How many bytes of blank space may precede the first record. */
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
  { object, bytes, damage }: UnpackedFile,
  format: TextFormat,
  bytesMax?: number,
): AsyncGenerator<ReadRecord> {
  const shape = format === 'csv' ? await detectCsvShape(bytes, sampledBytes) : plainCsv
  const lineEnd = shape.rowEnd.charCodeAt(0)
  const rows = createRowParser(shape)
  const parse = { json: parseLine, array: parseElement, csv: rows.parseAlone }[format]
  const table = parseTableName(object)
  let last: Omit<RawPosition, 'object'> & { readonly bytes: Uint8Array } = { line: 1, byte: 0, bytes: noBytes }
  let isListOpen = false
  for await (const record of splitRecords(bytes, format === 'json' ? 'values' : format, bytesMax, shape)) {
    isListOpen = record.value === null && record.ending === 'unclosed'
    for (const { start, bytes, parsed, isPart } of parse(record)) {
      const line = record.line + countLineEnds(record.bytes.subarray(0, start), lineEnd)
      const byte = record.byte + start
      last = { line, byte, bytes }
      if (parsed === null) continue
      const isTruncated = isPart && 'rejected' in parsed && isTruncationReason(parsed.rejected.reason, bytes)
      const header = rows.header()
      yield {
        raw: { object, line, byte },
        bytes: removeLineEnd(bytes, lineEnd),
        parsed: isTruncated ? createParseReject(damage()?.reason ?? 'truncated_record', damage()?.message) : parsed,
        table,
        ...(header && { header }),
        ...(record.cutLength !== null && { cutLength: record.cutLength - start }),
      }
      // Adds no reject for the damage, since the reject of the truncated record already reports it.
      if (isTruncated) return
    }
  }
  const found = damage() ?? (isListOpen ? new CompressionDamage('the list is not closed', 'truncated_record') : null)
  if (found === null) return
  const end = { line: last.line + countLineEnds(last.bytes, lineEnd), byte: last.byte + last.bytes.length }
  yield createDamagedRecord(object, found, end)
}

/** A value in a RawRecord, which usually contains a single value. */
interface ParsedValue {
  /** Offset in the bytes of the RawRecord. */
  readonly start: number
  readonly bytes: Uint8Array
  /** The parsed record; null for a value that is not a record, such as the header of a CSV file. */
  readonly parsed: ParsedSourceRecord | null
  /** Whether the file ended within this value. */
  readonly isPart: boolean
}

/** A line is one record, unless it cannot be parsed as one and consists of lists of objects or of several objects. */
function parseLine(line: RawRecord): readonly ParsedValue[] {
  const { bytes, cutLength, ending, within = null } = line
  const isPart = ending === 'unended'
  const parsed = parseRawRecord(line)
  const whole = [{ start: 0, bytes, parsed, isPart }]
  if (cutLength !== null || (within === null && !('rejected' in parsed))) return whole
  const values = new JsonValues('line', within === 'list')
  const found = findValues(bytes, values, isPart)
  // Does not split the line if there are other values between objects: the line has then lost its beginning, and each
  // nested object would be taken for a record.
  if (values.hasOther) return whole
  const isEmptyList = 'rejected' in parsed && parsed.rejected.reason === 'json_not_object'
  const last = found.at(-1)
  if (last === undefined) return within !== null || isEmptyList ? [] : whole
  const isOneValue = found.length === 1 && last.bytes.length === Buffer.from(bytes).toString('latin1').trim().length
  if (isOneValue || !found.some(value => value.bytes[0] === openBrace)) return whole
  const isLineEnd = isPart || bytes.at(-1) === lineFeed
  if (!values.isInList || !isLineEnd || values.isInValue) return found
  return [...found, { start: last.start + last.bytes.length, bytes: noBytes, parsed: unclosedList, isPart }]
}

export function parseRawRecord({ bytes, cutLength }: RawRecord): ParsedSourceRecord {
  return cutLength === null ? parseJsonLine(bytes) : createParseReject('record_too_large')
}

/** The values of a line or part of a line. The last one extends to the end if nothing ends it. */
function findValues(bytes: Uint8Array, values: JsonValues, isPart: boolean): readonly ParsedValue[] {
  const found: ParsedValue[] = []
  for (let from = 0; from < bytes.length; ) {
    const ended = values.nextEnd(bytes, from)
    if (ended < 0 && !values.isInValue) break
    const start = from + values.valueStart!
    from = ended < 0 ? bytes.length : ended
    const valueBytes = bytes.subarray(start, from)
    found.push({ start, bytes: valueBytes, parsed: parseJsonLine(valueBytes), isPart: isPart && ended < 0 })
  }
  return found
}

function parseElement({ bytes: all, cutLength, ending, value = null }: RawRecord): readonly ParsedValue[] {
  const start = value ?? all.length
  const bytes = all.subarray(start)
  const [isPart, isComplete] = [ending === 'unclosed', ending === 'complete']
  if (cutLength !== null) return [{ start, bytes, parsed: createParseReject('record_too_large'), isPart }]
  if (value !== null)
    return [{ start, bytes, parsed: isComplete ? parseJsonLine(bytes) : createParseReject('json_syntax'), isPart }]
  return [isComplete ? { start: 0, bytes, parsed: unclosedList, isPart } : { start, bytes, parsed: null, isPart }]
}

const noBytes = new Uint8Array()
const unclosedList = createParseReject('json_syntax', 'the list is not closed')

/** Parses the header and the rows of a CSV file in their order. */
export function createRowParser(shape: CsvShape) {
  let header: CsvHeader | null = null
  let isHeaderBroken = false
  /** @returns null for a line that is not a row, such as the header. */
  const parse = ({ bytes, cutLength, ending, line }: RawRecord): ParsedSourceRecord | null => {
    // No row can be read without column names.
    if (isHeaderBroken) return null
    if (cutLength !== null) return createParseReject('record_too_large')
    if (ending === 'unclosed') return createParseReject('truncated_record')
    if (header !== null) return parseCsvRow(bytes, header)
    if (line === 1 && isSeparatorLine(bytes)) return null
    const found = parseCsvHeader(bytes, shape)
    isHeaderBroken = 'rejected' in found
    if ('rejected' in found) return found
    header = found
    return null
  }
  return {
    parse,
    parseAlone: (record: RawRecord): readonly ParsedValue[] => [
      { start: 0, bytes: record.bytes, parsed: parse(record), isPart: record.ending !== 'complete' },
    ],
    /** The header; null before it is read. */
    header: () => header,
  }
}

/** Whether the truncation of the file can be the cause of this reject. */
function isTruncationReason(reason: RecordRejectReason, bytes: Uint8Array): boolean {
  if (reason === 'encoding_invalid_utf8') return [1, 2, 3].some(count => isUtf8(bytes.subarray(0, -count)))
  return reason === 'json_syntax' || reason === 'csv_column_count' || reason === 'truncated_record'
}

function removeLineEnd(bytes: Uint8Array, lineEnd: number): Uint8Array {
  if (bytes.at(-1) !== lineEnd) return bytes
  if (lineEnd !== lineFeed) return bytes.subarray(0, -1)
  let end = bytes.length - 1
  while (bytes[end - 1] === carriageReturn) end--
  return bytes.subarray(0, end)
}
