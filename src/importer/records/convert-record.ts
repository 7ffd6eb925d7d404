// What becomes of one record, in the same words for `convert`, the rehearsal and the send.

import { groupEventProperties, isLink, withSet } from './generated-events.ts'
import type { RecordConverter, SourceRecord } from './import-source.ts'
import {
  type ConvertedRecord,
  type ImportedEvent,
  RecordReject,
  type Rejected,
  type Skipped,
  skipped,
} from './imported-event.ts'
import { checkDrops, withoutLongGroups } from './service-drops.ts'

/** The receiver discards larger events without a word. Source: docs/wire/import.md §2.5. */
export const eventBytesMax = 1_000_000
/** What an event has on its way beside its properties, name and id: uuid, time and marks, with the longest id of a job. */
export const envelopeBytesMax = 330
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

/** As if all that is told of a person or a group were news. @throws RecordReject */
function checkSizes({ events: [first, ...others], groups = [], person }: ConvertedRecord): void {
  if (first !== undefined) checkSize(person === undefined ? first : withSet(first, person.properties))
  for (const event of others) checkSize(event)
  for (const group of groups)
    checkSize({ event: '$groupidentify', distinctId: group.distinctId, properties: groupEventProperties(group) })
}

/** @throws RecordReject */
function checkSize({
  event,
  distinctId,
  properties,
}: Pick<ImportedEvent, 'event' | 'distinctId' | 'properties'>): void {
  const bytes = Buffer.byteLength(JSON.stringify([event, distinctId, properties])) + envelopeBytesMax
  if (bytes > eventBytesMax) throw new RecordReject('record_too_large', null, `an event of ${bytes} bytes`)
}
