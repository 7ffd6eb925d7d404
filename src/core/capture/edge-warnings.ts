// What a project learns of data that the edge could not take as it was sent: an accepted event of which something was left
// out, and a request or an event that was refused. Each is an ingestion warning; what was refused is also a reject
// (`rejects.ts`).

import { type CapturedEvent, type CapturedReject, edgeNote } from '../events/captured-event.ts'
import type { JsonObject } from '../json.ts'

/** The warning that each note stands for. Source: docs/wire/ingestion.md 2.5, 2.7, 3, 9, 10. */
const noteWarnings = [
  { note: edgeNote.timeUnreadable, type: 'ignored_invalid_timestamp', field: 'timestamp' },
  { note: edgeNote.distinctIdCut, type: 'distinct_id_truncated', field: 'distinct_id' },
  { note: edgeNote.nameCut, type: 'event_name_truncated', field: 'event' },
  { note: edgeNote.personsSwitchedOff, type: 'person_processing_disabled', field: 'distinct_id' },
] as const

export function warnOfNotes(event: CapturedEvent, warn: (type: string, details: JsonObject) => void): void {
  for (const { note, type, field } of noteWarnings) {
    if ((event.notes & note) === 0) continue
    warn(type, { eventUuid: event.uuid, event: event.name, distinctId: event.distinctId, field })
  }
}

/** Details of the warning that stands for a reject; what could not be read of it is left out. */
export function rejectDetails(rejectId: string, reject: CapturedReject): JsonObject {
  const details: JsonObject = { rejectId }
  if (reject.field !== '') details.field = reject.field
  if (reject.uuid !== '') details.eventUuid = reject.uuid
  if (reject.name !== '') details.event = reject.name
  if (reject.distinctId !== '') details.distinctId = reject.distinctId
  return details
}
