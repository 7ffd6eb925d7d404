// A record of a format that knows types, such as Parquet and Avro, as what the stages after reading take: its JSON. That may
// be far longer than what the file has, which holds a name or a text once and refers to it any number of times.

import type { JsonObject, JsonValue } from '#core/json.ts'
import { RecordReject } from '../records/imported-event.ts'
import type { ReadRecord } from './read-record.ts'
import { recordBytesMax } from './split-records.ts'

export const tooLargeRecord: Pick<ReadRecord, 'bytes' | 'parsed'> = {
  bytes: Buffer.alloc(0),
  parsed: new RecordReject('record_too_large', null).outcome(),
}

/** @returns a reject for a record that is longer than any record of a text may be. */
export function typedRecord(value: JsonObject): Pick<ReadRecord, 'bytes' | 'parsed'> {
  const bytes = jsonBytes(value)
  return bytes.length > recordBytesMax ? tooLargeRecord : { bytes, parsed: { value } }
}

export function jsonBytes(value: JsonValue): Buffer {
  return Buffer.from(JSON.stringify(value))
}

/**
 * Counts the names and texts of a value before they are made, as far as `max`.
 * @param value as a reader holds it: texts are bytes, of which many may be the same ones.
 */
export function isLongerThan(max: number, value: unknown): boolean {
  let left = max
  count(value)
  return left < 0

  function count(part: unknown): void {
    if (left < 0 || typeof part !== 'object' || part === null) return
    if (part instanceof Uint8Array) left -= part.length
    else if (Array.isArray(part)) {
      for (let index = 0; index < part.length && left >= 0; index++) count(part[index])
    } else
      for (const [name, member] of Object.entries(part)) {
        left -= name.length
        count(member)
      }
  }
}
