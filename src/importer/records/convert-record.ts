// The outcome of one record, identical for `convert`, the rehearsal and sending.

import { addPersonSetProperties, createGroupEventProperties, isIdentityLink } from './generated-events.ts'
import type { RecordConverter, SourceRecord } from './import-source.ts'
import {
  type ConvertedRecord,
  createSkippedOutcome,
  type ImportedEvent,
  RecordReject,
  type RejectedRecord,
  type SkippedRecord,
} from './imported-event.ts'
import { checkServiceAcceptsRecord, removeLongGroups } from './service-drops.ts'

/** The receiver silently discards larger events. Source: docs/wire/import.md §2.5. */
export const eventBytesMax = 1_000_000
/** Bytes of a sent event besides its properties, name and id: uuid, time and marker properties with the longest job id. */
export const envelopeBytesMax = 330
/**
 * Bytes of an event per character of its record, at most: an event may repeat a value, and a character has up to six bytes.
 */
const expansionMax = 12

/**
 * @param textLength length of the record's text, since events of a short record are not measured.
 * @returns the converter's outcome; a RecordReject that the converter throws is returned as a value.
 */
export function convertRecord(
  converter: Pick<RecordConverter, 'convert'>,
  record: SourceRecord,
  textLength: number = Number.POSITIVE_INFINITY,
): ConvertedRecord | RejectedRecord | SkippedRecord {
  try {
    const outcome = converter.convert(record)
    if (!('events' in outcome)) return outcome
    if (yieldsNothing(outcome)) return createSkippedOutcome('filtered')
    if (textLength * expansionMax > eventBytesMax) checkSizes(outcome)
    checkServiceAcceptsRecord(outcome)
    return removeLongGroups(outcome)
  } catch (error) {
    if (!(error instanceof RecordReject)) throw error
    return error.outcome()
  }
}

/** Whether no event can result from the record, so that it must not count as converted. */
function yieldsNothing({ events, groups = [], links = [] }: ConvertedRecord): boolean {
  return events.length === 0 && groups.length === 0 && !links.some(isIdentityLink)
}

/** Measures the largest events that can result, with every property of a person or group as if it were new. @throws RecordReject */
function checkSizes({ events: [first, ...others], groups = [], person }: ConvertedRecord): void {
  if (first !== undefined) checkSize(person === undefined ? first : addPersonSetProperties(first, person.properties))
  for (const event of others) checkSize(event)
  for (const group of groups)
    checkSize({ event: '$groupidentify', distinctId: group.distinctId, properties: createGroupEventProperties(group) })
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
