// What becomes of one record, in the same words for `convert`, the rehearsal and the send.

import { isLink } from './generated-events.ts'
import type { RecordConverter, SourceRecord } from './import-source.ts'
import { type ConvertedRecord, RecordReject, type Rejected, type Skipped, skipped } from './imported-event.ts'
import { checkDrops, withoutLongGroups } from './service-drops.ts'

/** The receiver discards larger events without a word. Source: docs/wire/import.md §2.5. */
const eventBytesMax = 1_000_000
/** A record repeats a value in an event a few times at most; characters have up to three bytes, escapes up to six. */
const expansionMax = 12

/**
 * @param textLength how long the record is as a text; the events of a short one need not be measured.
 * @returns what the converter makes of the record; its refusal as a value.
 */
export function convertRecord(
  converter: RecordConverter,
  record: SourceRecord,
  textLength: number = Number.POSITIVE_INFINITY,
): ConvertedRecord | Rejected | Skipped {
  try {
    const outcome = converter.convert(record)
    if (!('events' in outcome)) return outcome
    if (saysNothing(outcome)) return skipped('filtered')
    if (textLength * expansionMax > eventBytesMax) checkSizes(outcome)
    checkDrops(outcome)
    return withoutLongGroups(outcome)
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return error.outcome()
  }
}

/** Such a record would count among those that give events, although none can come of it. */
function saysNothing({ events, groups = [], links = [] }: ConvertedRecord): boolean {
  return events.length === 0 && groups.length === 0 && !links.some(isLink)
}

/** @throws RecordReject */
function checkSizes({ events }: ConvertedRecord): void {
  for (const { properties } of events) {
    const bytes = Buffer.byteLength(JSON.stringify(properties))
    if (bytes > eventBytesMax) throw new RecordReject('record_too_large', null, `an event of ${bytes} bytes`)
  }
}
