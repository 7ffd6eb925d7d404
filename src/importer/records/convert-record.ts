// What becomes of one record, in the same words for `convert`, the rehearsal and the send.

import type { RecordConverter, SourceRecord } from './import-source.ts'
import { type ConvertedRecord, RecordReject, type Rejected, type Skipped } from './imported-event.ts'

/** @returns what the converter makes of the record; its refusal as a value. */
export function convertRecord(converter: RecordConverter, record: SourceRecord): ConvertedRecord | Rejected | Skipped {
  try {
    return converter.convert(record)
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return error.outcome()
  }
}
