// How a record is stored: its place in the raw files, its JSON, and what the JSON lacks. None of the three contains a line
// feed, and only the JSON, which is last, may contain a tab.

import { isJsonObject, type JsonObject, parseJson } from '#core/json.ts'
import type { RawObject } from '../job/manifest.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { RecordSource } from '../job/staged-part.ts'
import type { ParsedSourceRecord } from '../read/parse-record.ts'
import type { ReadRecord } from '../read/read-record.ts'
import type { RecordRejectReason, SkipReason } from '../records/imported-event.ts'

/** How much of a record a reject shows, in UTF-16 code units. Source: docs/wire/import.md §2.6. */
export const shownSourceMax = 64 * 1024

export interface RawRecordPlace {
  /** Index among the raw objects of the manifest. */
  readonly object: number
  readonly line: number
  readonly byte: number
  /** As in `SourceRecord`. */
  readonly ordinal: number
}

export interface RecordContent {
  readonly parsed: ParsedSourceRecord
  /** The record as in the user's file. */
  readonly text: string
}

/** A record with what its conversion needs. */
export interface DecodedStagedRecord extends RecordContent {
  readonly ordinal: number
  /** The file that contains the record. */
  readonly raw: RawObject
}

/** Data that the record's JSON lacks. */
interface Extra {
  /** The text in the file, if it is not the record's JSON. */
  readonly s?: string
  /** SHA-256 of the original bytes, if `s` is only their beginning. */
  readonly h?: string
  /** Length in bytes, if the record is unreadable and longer than `s`. */
  readonly b?: number
  readonly r?: { readonly reason: RecordRejectReason; readonly field: string | null; readonly detail?: string }
  readonly k?: SkipReason
}

const utf8 = new TextDecoder()
const lineFeed = 0x0a
const byteOrderMark = Buffer.from('\ufeff')
const nothing = new Uint8Array()

export function encodeRecordPlace({ object, line, byte, ordinal }: RawRecordPlace): string {
  return `[${object},${line},${byte},${ordinal}]`
}

export function decodeRecordPlace(text: string): RawRecordPlace {
  const [object, line, byte, ordinal] = JSON.parse(text) as [number, number, number, number]
  return { object, line, byte, ordinal }
}

/** The JSON is as in the file, unless the file has another format or the record has several lines. */
export function encodeRecordContent(record: ReadRecord): { readonly extra: string; readonly json: Uint8Array } {
  const { parsed, bytes, header, cutLength = bytes.length } = record
  if ('value' in parsed && header === undefined && !bytes.includes(lineFeed))
    return { extra: '', json: removeByteOrderMark(bytes) }
  const text = utf8.decode(bytes)
  const isWhole = text.length <= shownSourceMax && !('rejected' in parsed)
  const extra: Extra = {
    s: text.slice(0, shownSourceMax),
    ...(!isWhole && { h: sha256Hex(bytes) }),
    ...('rejected' in parsed && { r: parsed.rejected, ...(text.length > shownSourceMax && { b: cutLength }) }),
    ...('skipped' in parsed && { k: parsed.skipped }),
  }
  return {
    extra: JSON.stringify(extra),
    json: 'value' in parsed ? Buffer.from(JSON.stringify(parsed.value)) : nothing,
  }
}

function removeByteOrderMark(bytes: Uint8Array): Uint8Array {
  const isMarked = bytes[0] === byteOrderMark[0] && byteOrderMark.equals(bytes.subarray(0, byteOrderMark.length))
  return isMarked ? bytes.subarray(byteOrderMark.length) : bytes
}

/** @param objects the objects of all raw files. */
export function decodeRecord(
  { place, extra, json }: { readonly place: string; readonly extra: string; readonly json: Buffer },
  objects: readonly RawObject[],
): DecodedStagedRecord {
  const { object, ordinal } = decodeRecordPlace(place)
  return { ...decodeRecordContent(extra, json.toString()), ordinal, raw: objects[object]! }
}

export function decodeRecordContent(extraText: string, json: string): RecordContent {
  const extra = decodeExtra(extraText)
  return { parsed: decodeParsed(json, extra), text: extra?.s ?? json }
}

/** @param columns the column names of a CSV row. */
export function decodeRecordSource(extraText: string, json: string, columns?: readonly string[]): RecordSource {
  const extra = decodeExtra(extraText)
  const text = extra?.s ?? json
  return {
    text,
    sha256: extra?.h ?? sha256Hex(text),
    unreadableBytes: extra?.r === undefined ? null : (extra.b ?? Buffer.byteLength(text)),
    ...(columns !== undefined && { row: { columns, cells: json === '' ? null : (parseJson(json) as JsonObject) } }),
  }
}

function decodeExtra(text: string): Extra | null {
  return text === '' ? null : (JSON.parse(text) as Extra)
}

function decodeParsed(json: string, extra: Extra | null): ParsedSourceRecord {
  if (extra?.r !== undefined) return { rejected: extra.r }
  if (extra?.k !== undefined) return { skipped: extra.k }
  const value = parseJson(json)
  if (!isJsonObject(value)) throw new Error('a staged line does not contain a record')
  return { value: value as JsonObject }
}
