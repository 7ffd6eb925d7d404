// Parses the bytes of one line or row into a record or a reject. Used for every input: files, archives, fetched parts and
// `convert`. Source: docs/wire/import.md §1.9, §2.6 (bytes, shape).

import { isUtf8 } from 'node:buffer'
import { type CsvDelimiter, delimiterNames, plainCsv, splitCsvRow } from '#core/csv.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseJson, setOwnValue } from '#core/json.ts'
import { hasMoreValuesThan, isNestedDeeperThan } from '#core/json-text.ts'
import {
  createSkippedOutcome,
  RecordReject,
  type RecordRejectReason,
  type RejectedRecord,
  type SkippedRecord,
} from '../records/imported-event.ts'
import { recordNestingMax } from '../records/record-fields.ts'
import { createRowEndFinder, recordValuesMax } from './split-records.ts'

/** The header of a CSV file, which is needed to parse its rows. */
export interface CsvHeader {
  readonly columns: readonly string[]
  /** The delimiter, if it is not a comma. */
  readonly delimiter?: CsvDelimiter
  /** See `CsvShape`; absent if false. */
  readonly hasEscapes?: boolean
}

export type ParsedSourceRecord = { readonly value: JsonObject } | RejectedRecord | SkippedRecord

/**
 * Parses a line of JSON.
 * @param line with or without its line end.
 */
export function parseJsonLine(line: Uint8Array): ParsedSourceRecord {
  return parseBytes(line, text => {
    const value = parseJsonText(text)
    if (!isJsonObject(value)) throw new RecordReject('json_not_object', null)
    return value
  })
}

/**
 * Parses a row of CSV into texts by column, without empty cells.
 * @param row with or without its line end.
 */
export function parseCsvRow(row: Uint8Array, header: CsvHeader): ParsedSourceRecord {
  return parseBytes(row, text => {
    const { columns } = header
    const cells = readCells(text, header)
    if (cells.length !== columns.length) {
      const other = header.hasEscapes ? 'were plain characters' : 'escaped quotes'
      const hint = fitsOtherQuoting(text, header)
        ? `; it would fit if its backslashes ${other}, unlike at the beginning of the file`
        : ''
      const detail = `the header names ${describeColumns(header)}, and the row has ${cells.length}${hint}`
      throw new RecordReject('csv_column_count', null, detail)
    }
    const value: JsonObject = {}
    for (const [index, column] of columns.entries()) if (cells[index] !== '') setOwnValue(value, column, cells[index]!)
    return value
  })
}

/** Whether a row would also fit the header with the opposite `hasEscapes`, but with different cells or an earlier end. */
export function fitsOtherQuoting(row: string, { columns, delimiter, hasEscapes = false }: CsvHeader): boolean {
  if (!row.includes('\\"')) return false
  const other = extractFirstRow(row, delimiter, !hasEscapes)
  const cells = other === null ? null : splitCsvRow(other, delimiter, columns.length, !hasEscapes)
  if (cells?.length !== columns.length) return false
  const own = splitCsvRow(row, delimiter, columns.length, hasEscapes)
  return own === null || cells.some((cell, index) => cell !== own[index])
}

/**
 * Extracts the first row of a text that a misread quote may have extended over several rows. @returns null if a quote is
 * not closed.
 */
function extractFirstRow(rows: string, delimiter: CsvDelimiter = ',', hasEscapes: boolean): string | null {
  const bytes = Buffer.from(`${rows}\n`)
  const end = createRowEndFinder({ delimiter, rowEnd: '\n', hasEscapes }).next(bytes, 0)
  return end < 0 ? null : bytes.toString('utf8', 0, end - 1)
}

function readCells(row: string, { delimiter, hasEscapes }: Partial<CsvHeader>): string[] {
  const cells = splitCsvRow(row, delimiter, recordValuesMax, hasEscapes)
  if (cells === null) throw new RecordReject('record_too_large', null, tooManyValues)
  return cells
}

/**
 * Describes a header's columns for a message. A single column was probably misread, so the message names the known
 * delimiters.
 */
function describeColumns({ columns: { length: count }, delimiter = ',' }: CsvHeader): string {
  if (count === 1) return `1 column, without any ${Object.values(delimiterNames).join(', ')}`
  return `${count} columns${delimiter === ',' ? '' : ` between ${delimiterNames[delimiter]}`}`
}

/** Parses the header of a CSV file. If it is rejected, no row of the file can be read. */
export function parseCsvHeader(header: Uint8Array, { delimiter, hasEscapes } = plainCsv): CsvHeader | RejectedRecord {
  return catchReject(() => ({
    columns: makeNamesDistinct(readCells(decodeText(header), { delimiter, hasEscapes })),
    ...(delimiter !== ',' && { delimiter }),
    ...(hasEscapes && { hasEscapes }),
  }))
}

/** Names unnamed columns and renames duplicate ones, so that no cell is lost. */
function makeNamesDistinct(names: readonly string[]): string[] {
  const distinct = new Set<string>()
  /** The next number to try for each name. Without this map, thousands of equal names would take quadratic time. */
  const next = new Map<string, number>()
  for (const [index, written] of names.entries()) {
    const name = written || `column_${index + 1}`
    let number = next.get(name) ?? 1
    let free = name
    while (distinct.has(free)) free = `${name}_${++number}`
    next.set(name, number)
    distinct.add(free)
  }
  return [...distinct]
}

function parseBytes(bytes: Uint8Array, read: (text: string) => JsonObject): ParsedSourceRecord {
  return catchReject(() => {
    const text = decodeText(bytes)
    return text.trim() === '' ? createSkippedOutcome('blank_line') : { value: read(text) }
  })
}

function catchReject<T>(read: () => T): T | RejectedRecord {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return error.outcome()
  }
}

export function createParseReject(reason: RecordRejectReason, detail?: string): RejectedRecord {
  return new RecordReject(reason, null, detail).outcome()
}

export const nestsTooDeeply = `it nests more than ${recordNestingMax} lists and objects`
const tooManyValues = `it holds more than ${recordValuesMax} values`

/**
 * Matches the position in V8's message, which counts from the start of the record but would be taken for a line of the
 * file.
 */
const placeInRecord = / \(line \d+ column \d+\)$/

function parseJsonText(text: string): JsonValue {
  if (isNestedDeeperThan(text, recordNestingMax)) throw new RecordReject('json_syntax', null, nestsTooDeeply)
  if (hasMoreValuesThan(text, recordValuesMax)) throw new RecordReject('record_too_large', null, tooManyValues)
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new RecordReject('json_syntax', null, error.message.replace(placeInRecord, ''))
  }
}

/** Decodes UTF-8, without a byte order mark. @throws RecordReject for compressed bytes and other encodings. */
function decodeText(bytes: Uint8Array): string {
  const packer = compressionMagics.find(({ magic }) => magic.every((byte, index) => bytes[index] === byte))
  if (packer !== undefined) throw new RecordReject('compressed_input', null, `these are bytes of ${packer.name}`)
  if (isUtf16(bytes)) throw new RecordReject('encoding_invalid_utf8', null, 'these are bytes of UTF-16')
  if (!isUtf8(bytes)) throw new RecordReject('encoding_invalid_utf8', null)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

/** UTF-16 starts with its byte order mark, or has a zero byte in most letters, which UTF-8 text never has. */
function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true
  if (first !== 0 && second !== 0) return false
  const begun = bytes.subarray(0, utf16Looked)
  const countZeros = (from: 0 | 1) => begun.filter((byte, at) => at % 2 === from && byte === 0).length
  const pairs = Math.floor(begun.length / 2)
  return pairs >= 2 && (countZeros(0) >= pairs || countZeros(1) >= pairs)
}

const utf16Looked = 32

/** Magic numbers of compressed files, as they are and as a program has converted them from Latin-1 to UTF-8. */
const compressionMagics = [
  ['gzip', '\x1f\x8b'],
  ['zstd', '\x28\xb5\x2f\xfd'],
  ['zip', 'PK\x03\x04'],
].flatMap(([name, beginning]) =>
  (['latin1', 'utf8'] as const).map(encoding => ({ name, magic: Buffer.from(beginning!, encoding) })),
)
