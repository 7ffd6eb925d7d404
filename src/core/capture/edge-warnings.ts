// Ingestion warnings about data that the edge did not take as sent: accepted events that it had to change, and refused
// requests and events. Refused ones are also kept as rejects (`rejects.ts`).

import { type CapturedEvent, type CapturedReject, edgeNote } from '../events/captured-event.ts'
import type { JsonObject } from '../json.ts'

/**
 * The warning for each edge note. If an event has several notes, the answer reports the first in this list.
 * Source: docs/wire/ingestion.md 2.5, 2.7, 3, 9, 10.
 */
export const noteWarnings = [
  { note: edgeNote.timeUnreadable, type: 'ignored_invalid_timestamp', field: 'timestamp' },
  { note: edgeNote.distinctIdCut, type: 'distinct_id_truncated', field: 'distinct_id' },
  { note: edgeNote.nameCut, type: 'event_name_truncated', field: 'event' },
  { note: edgeNote.personsSwitchedOff, type: 'person_processing_disabled', field: 'distinct_id' },
] as const

export function raiseWarningsFromNotes(event: CapturedEvent, warn: (type: string, details: JsonObject) => void): void {
  for (const { note, type, field } of noteWarnings) {
    if ((event.notes & note) === 0) continue
    warn(type, { eventUuid: event.uuid, event: event.name, distinctId: event.distinctId, field })
  }
}

/** The details of a reject's warning, without the fields that could not be read. */
export function describeReject(rejectId: string, reject: CapturedReject): JsonObject {
  const details: JsonObject = { rejectId }
  if (reject.field !== '') details.field = reject.field
  if (reject.uuid !== '') details.eventUuid = reject.uuid
  if (reject.name !== '') details.event = reject.name
  if (reject.distinctId !== '') details.distinctId = reject.distinctId
  return details
}
