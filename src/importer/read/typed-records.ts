// Records of typed formats, such as Parquet and Avro, for the later stages: their values as JSON, with times as RFC 3339,
// decimals as text and every digit of 64-bit integers. Source: docs/wire/import.md §1.9 (Parquet).

import { isUtf8 } from 'node:buffer'
import { isDeeperThan, isJsonObject, type JsonValue, parseNumberOrLiteral } from '#core/json.ts'
import { recordNestingMax } from '../records/record-fields.ts'
import type { CompressionDamage } from './byte-reader.ts'
import { createParseReject, nestsTooDeeply } from './parse-record.ts'
import { createDamagedRecord, parseTableName, type ReadRecord } from './read-record.ts'
import { recordBytesMax, recordValuesMax } from './split-records.ts'

/**
 * Adds positions to the records of a file. An error ends them with a reject.
 * @param blocks records, in groups that are read together.
 * @param toDamage says how the error damages the file. @throws it if it does not.
 */
export async function* addRecordPositions(
  object: string,
  blocks: AsyncIterable<Iterable<TypedRecord>>,
  toDamage: (error: Error) => CompressionDamage | Promise<CompressionDamage>,
): AsyncGenerator<ReadRecord> {
  const table = parseTableName(object)
  let line = 1
  try {
    for await (const block of blocks)
      for (const { bytes, parsed } of block) {
        yield { raw: { object, line, byte: 0 }, bytes, parsed, table }
        line++
      }
  } catch (error) {
    yield createDamagedRecord(object, await toDamage(error as Error), { line, byte: 0 })
  }
}

/** A record without its position. */
export type TypedRecord = Pick<ReadRecord, 'bytes' | 'parsed'>

const noBytes = Buffer.alloc(0)
export const tooLargeRecord: TypedRecord = { bytes: noBytes, parsed: createParseReject('record_too_large') }

/**
 * The JSON can be far longer than the record in the file, which stores a name or text once and refers to it any number of
 * times.
 * @returns a reject for a value that is not an object, or exceeds the size or the nesting allowed for text records.
 */
export function encodeTypedRecord(value: JsonValue): TypedRecord {
  const encode = () => Buffer.from(JSON.stringify(value))
  if (!isJsonObject(value)) return { bytes: encode(), parsed: createParseReject('json_not_object') }
  if (isDeeperThan(value, recordNestingMax))
    return { bytes: noBytes, parsed: createParseReject('json_syntax', nestsTooDeeply) }
  const bytes = encode()
  return bytes.length > recordBytesMax ? tooLargeRecord : { bytes, parsed: { value } }
}

/**
 * Counts the values of a record, and the bytes of its names and texts, before its JSON is built.
 * @param record from a reader: texts are byte arrays, and many of them may be the same array.
 */
export function isRecordTooLarge(record: unknown): boolean {
  let bytesLeft = recordBytesMax
  let valuesLeft = recordValuesMax
  countValue(record)
  return bytesLeft < 0 || valuesLeft < 0

  function countValue(value: unknown): void {
    valuesLeft--
    if (bytesLeft < 0 || valuesLeft < 0 || typeof value !== 'object' || value === null) return
    if (value instanceof Uint8Array) bytesLeft -= value.length
    else if (Array.isArray(value)) {
      for (let index = 0; index < value.length && valuesLeft >= 0; index++) countValue(value[index])
    } else
      for (const [name, member] of Object.entries(value)) {
        bytesLeft -= name.length
        countValue(member)
      }
  }
}

/** The number of fractional digits of seconds. */
type TimeDigits = 3 | 6 | 9

export const timeDigits: Readonly<Record<string, TimeDigits>> = { MILLIS: 3, MICROS: 6, NANOS: 9 }

const msPerDay = 86_400_000
const dateMsMax = 8.64e15

/**
 * @param count the time since 1970, in units of the last digit.
 * @param isUtc whether the time is an instant; a local time gets no zone. @returns the count itself if it is outside the
 * range of dates.
 */
export function toTimestampValue(count: bigint, digits: TimeDigits, isUtc: boolean): JsonValue {
  const perSecond = 10n ** BigInt(digits)
  const fraction = ((count % perSecond) + perSecond) % perSecond
  const seconds = (count - fraction) / perSecond
  const ms = Number(seconds) * 1_000
  if (Math.abs(ms) > dateMsMax) return toIntegerValue(count)
  const text = new Date(ms).toISOString().slice(0, -'.000Z'.length)
  return `${text}.${String(fraction).padStart(digits, '0')}${isUtc ? 'Z' : ''}`
}

/** @param days the number of days since 1970. */
export function toDateValue(days: number): JsonValue {
  const ms = days * msPerDay
  return Math.abs(ms) > dateMsMax ? days : new Date(ms).toISOString().slice(0, 10)
}

/** @param count the time since midnight, in units of the last digit. */
export function toTimeOfDayValue(count: bigint, digits: TimeDigits): JsonValue {
  const text = toTimestampValue(count, digits, false)
  return typeof text === 'string' ? text.slice(text.indexOf('T') + 1) : text
}

export function toIntegerValue(value: bigint): JsonValue {
  return parseNumberOrLiteral(String(value))
}

/** @returns null for NaN and infinities, which JSON cannot represent. */
export function toDoubleValue(value: number): JsonValue {
  return Number.isFinite(value) ? value : null
}

/** The shortest number that is the same 32-bit float: 0.1, not 0.10000000149011612. */
export function toFloatValue(value: number): JsonValue {
  if (!Number.isFinite(value)) return null
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return value
}

/** No database has decimals of more than 32 bytes, or scales of more than three digits. */
const decimalBytesMax = 64
const scaleMax = 1_000

/**
 * @param unscaled the number, or its bytes in big-endian two's complement.
 * @param scale how many digits follow the decimal point.
 * @throws RangeError for more bytes or digits than any database has, since a tiny file could claim an enormous number.
 */
export function toDecimalValue(unscaled: bigint | Uint8Array, scale: number): JsonValue {
  if (!Number.isInteger(scale) || Math.abs(scale) > scaleMax)
    throw new RangeError(`a decimal has the scale ${scale}, more than the limit of ${scaleMax}`)
  const value = typeof unscaled === 'bigint' ? unscaled : readBigEndian(unscaled)
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0')
  const sign = value < 0n ? '-' : ''
  return scale <= 0
    ? `${sign}${digits}${'0'.repeat(-scale)}`
    : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

function readBigEndian(bytes: Uint8Array): bigint {
  if (bytes.length > decimalBytesMax)
    throw new RangeError(`a decimal has ${bytes.length} bytes, more than the limit of ${decimalBytesMax}`)
  let value = 0n
  for (const byte of bytes) value = (value << 8n) | BigInt(byte)
  return BigInt.asIntN(bytes.length * 8, value)
}

/** Text if the bytes are valid UTF-8, otherwise base64. */
export function toBytesValue(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return buffer.toString(isUtf8(buffer) ? 'utf8' : 'base64')
}

export function toUuidValue(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
