// Converts a record of a typed format, such as Parquet and Avro, to JSON for the later stages. The JSON can be far longer than
// the record in the file, which stores a name or text once and refers to it any number of times.

import { isDeeperThan, type JsonObject, type JsonValue } from '#core/json.ts'
import { RecordReject } from '../records/imported-event.ts'
import { recordNestingMax } from '../records/record-fields.ts'
import { createNestingReject } from './parse-record.ts'
import type { ReadRecord } from './read-record.ts'
import { recordBytesMax, recordValuesMax } from './split-records.ts'

export const tooLargeRecord: Pick<ReadRecord, 'bytes' | 'parsed'> = {
  bytes: Buffer.alloc(0),
  parsed: new RecordReject('record_too_large', null).outcome(),
}

/** @returns a reject for a record that exceeds the size or the nesting allowed for text records. */
export function encodeTypedRecord(value: JsonObject): Pick<ReadRecord, 'bytes' | 'parsed'> {
  if (isDeeperThan(value, recordNestingMax)) return { bytes: Buffer.alloc(0), parsed: createNestingReject().outcome() }
  const bytes = encodeJson(value)
  return bytes.length > recordBytesMax ? tooLargeRecord : { bytes, parsed: { value } }
}

export function encodeJson(value: JsonValue): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/**
 * Counts the values of a record, and the bytes of its names and texts, before its JSON is built.
 * @param record from a reader: texts are byte arrays, and many of them may be the same array.
 */
export function isTooLarge(record: unknown): boolean {
  let bytesLeft = recordBytesMax
  let valuesLeft = recordValuesMax
  count(record)
  return bytesLeft < 0 || valuesLeft < 0

  function count(value: unknown): void {
    valuesLeft--
    if (bytesLeft < 0 || valuesLeft < 0 || typeof value !== 'object' || value === null) return
    if (value instanceof Uint8Array) bytesLeft -= value.length
    else if (Array.isArray(value)) {
      for (let index = 0; index < value.length && valuesLeft >= 0; index++) count(value[index])
    } else
      for (const [name, member] of Object.entries(value)) {
        bytesLeft -= name.length
        count(member)
      }
  }
}
