// One line of a staged part: the record's place and time, a tab, and the record as JSON. Lines are sorted by time, then by
// their place in the raw files, so their order depends only on the files.

import { isJsonObject, type JsonObject, parseJson } from '#core/json.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { ParsedRecord } from '../read/parse-record.ts'
import type { ReadRecord } from '../read/read-record.ts'
import type { RejectReason, SkipReason } from '../records/imported-event.ts'

/** How much of a record a reject shows, in UTF-16 code units. Source: docs/wire/import.md §2.6. */
export const shownSourceMax = 64 * 1024

export interface LineKey {
  /** Null if the time is unreadable; such lines are in separate parts. */
  readonly timeUs: number | null
  /** Index among the raw objects of the manifest. */
  readonly object: number
  readonly line: number
  readonly byte: number
}

export interface StagedLine extends LineKey {
  /** As in `SourceRecord`. */
  readonly ordinal: number
  readonly parsed: ParsedRecord
  /** The record as in the user's file. */
  readonly text: string
  /** Hashes the original bytes in the file. */
  readonly sourceSha256: () => string
  /** How many bytes of the file were unreadable as a record; null for a readable record. */
  readonly unreadableBytes: number | null
}

/** Data that the record's JSON lacks: the optional last element of a line's head. */
interface Extra {
  /** The text in the file, if it is not the record's JSON. */
  readonly s?: string
  /** SHA-256 of the original bytes, if `s` is only their beginning. */
  readonly h?: string
  /** Length in bytes, if the record is unreadable and longer than `s`. */
  readonly b?: number
  readonly r?: { readonly reason: RejectReason; readonly field: string | null; readonly detail?: string }
  readonly k?: SkipReason
}

const utf8 = new TextDecoder()
const [lineFeed, tab] = [0x0a, 0x09]
const byteOrderMark = Buffer.from('\ufeff')

/** @returns the bytes of the line without a line end. */
export function encodeLine(record: ReadRecord, key: LineKey, ordinal: number): Buffer {
  const { parsed, bytes, isJson, cutLength = bytes.length } = record
  const head = [key.timeUs, key.object, key.line, key.byte, ordinal]
  if ('value' in parsed && isJson && !bytes.includes(lineFeed))
    return joinLine(JSON.stringify(head), removeByteOrderMark(bytes))
  const text = utf8.decode(bytes)
  const isWhole = text.length <= shownSourceMax && !('rejected' in parsed)
  const extra: Extra = {
    s: text.slice(0, shownSourceMax),
    ...(!isWhole && { h: sha256Hex(bytes) }),
    ...('rejected' in parsed && { r: parsed.rejected, ...(text.length > shownSourceMax && { b: cutLength }) }),
    ...('skipped' in parsed && { k: parsed.skipped }),
  }
  return Buffer.from(`${JSON.stringify([...head, extra])}\t${'value' in parsed ? JSON.stringify(parsed.value) : ''}`)
}

/** Appends the record's own bytes, which parsing has validated as UTF-8. */
function joinLine(head: string, bytes: Uint8Array): Buffer {
  const line = Buffer.allocUnsafe(head.length + 1 + bytes.length)
  line.write(head, 'latin1')
  line[head.length] = tab
  line.set(bytes, head.length + 1)
  return line
}

function removeByteOrderMark(bytes: Uint8Array): Uint8Array {
  const isMarked = bytes[0] === byteOrderMark[0] && byteOrderMark.equals(bytes.subarray(0, byteOrderMark.length))
  return isMarked ? bytes.subarray(byteOrderMark.length) : bytes
}

export function decodeLine(line: string): StagedLine {
  const headEnd = line.indexOf('\t')
  const [timeUs, object, row, byte, ordinal, extra] = JSON.parse(line.slice(0, headEnd)) as [
    number | null,
    number,
    number,
    number,
    number,
    Extra?,
  ]
  const record = line.slice(headEnd + 1)
  const text = extra?.s ?? record
  return {
    timeUs,
    object,
    line: row,
    byte,
    ordinal,
    parsed: decodeParsed(record, extra),
    text,
    sourceSha256: () => extra?.h ?? sha256Hex(text),
    unreadableBytes: extra?.r === undefined ? null : (extra.b ?? Buffer.byteLength(text)),
  }
}

/** @param line bytes of a line. */
export function decodeLineKey(line: Buffer): LineKey {
  // Latin-1 is twice as fast, and garbles only texts of the head, which are not read here.
  const [timeUs, object, row, byte] = JSON.parse(line.toString('latin1', 0, line.indexOf(tab))) as number[]
  return { timeUs: timeUs as number | null, object: object!, line: row!, byte: byte! }
}

export function compareKeys(a: LineKey, b: LineKey): number {
  return (a.timeUs ?? 0) - (b.timeUs ?? 0) || a.object - b.object || a.line - b.line || a.byte - b.byte
}

function decodeParsed(record: string, extra: Extra | undefined): ParsedRecord {
  if (extra?.r !== undefined) return { rejected: extra.r }
  if (extra?.k !== undefined) return { skipped: extra.k }
  const value = parseJson(record)
  if (!isJsonObject(value)) throw new Error('a staged line does not contain a record')
  return { value: value as JsonObject }
}
