import type { DecodedRecord } from '#core/events/captured-event.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'

/** All records of a run, as `RecordCursor` reads them. */
export function decodeRecords(bytes: Uint8Array, recordCount?: number): DecodedRecord[] {
  const cursor = new RecordCursor(bytes, recordCount)
  const records: DecodedRecord[] = []
  while (!cursor.done) records.push(cursor.next())
  return records
}
