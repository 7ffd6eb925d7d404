// Sentences for the service's notes about an import job: why something was not stored as sent, or could not be undone.
// Source: docs/wire/import.md §2.9, §2.11, §3.9.

import type { WarningType } from '#core/events/warning-types.ts'
import { formatCount } from '#core/format-count.ts'
import type { UndoRefusal } from '#core/imports/import-changes.ts'

/** Reason of the importer's own note about rows of erased persons. */
export const rowsErased = 'rows_erased'

/** What is counted, and what happened to each item. */
type NoteMessage = readonly [unit: string, text: string]

const undoMessages = {
  'undo_left:history_is_incomplete': ['change', 'not undone: the stored events do not explain what is there'],
  'undo_left:events_not_readable': ['change', 'not undone: the events concerned are too many or too large to be read'],
  'undo_left:group_type_is_used': ['created group type', 'not removed: used by a flag, a group or other events'],
} satisfies Record<UndoRefusal, NoteMessage>

const otherMessages: Partial<Record<WarningType, NoteMessage>> & Readonly<Record<string, NoteMessage>> = {
  recent: ['recent event', 'from the last 48 hours, stored like all others and not charged'],
  cannot_merge_already_identified: ['link', 'not made: both ids belong to persons who are already identified'],
  cannot_merge_too_many_distinct_ids: ['link', 'not made: the person has too many ids'],
  cannot_merge_with_illegal_distinct_id: ['link', 'not made: the id cannot stand for a person'],
  person_properties_size_violation: ['person change', 'left out: the properties would be too large'],
  group_properties_size_violation: ['group change', 'left out: the properties would be too large'],
  group_type_deleted: ['group', 'left out: its type was deleted since'],
  group_type_refused: ['group', 'left out: the project accepts no further group type'],
  event_name_truncated: ['event name', 'truncated: it was too long'],
  distinct_id_truncated: ['distinct id', 'truncated: it was too long'],
  rows_fewer_than_stored: [
    'row',
    'missing: events sent again count once, and events of erased persons are gone; otherwise the event store has lost some',
  ],
  [rowsErased]: ['row', 'gone: persons were erased since the import was created'],
  rows_not_counted: ['row count', 'missing: there are too many for the event store to count them'],
  import_job_closed: ['event', 'not stored: it came after the job was closed'],
}
const messages: Readonly<Record<string, NoteMessage>> = { ...undoMessages, ...otherMessages }

/**
 * @returns a sentence with the count, and the code that docs/import.md explains, such as `2 changes not undone: …`;
 *   for an unknown code, the count and the code.
 */
export function formatNote({ reason, count }: { readonly reason: string; readonly count: number }): string {
  if (!Object.hasOwn(messages, reason)) return `${formatCount(count, 'time')}: ${reason}.`
  const [unit, text] = messages[reason]!
  return `${formatCount(count, unit)} ${text} (${reason}).`
}
