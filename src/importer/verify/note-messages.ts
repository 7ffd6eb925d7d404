// Sentences for the service's notes about an import job: why something was not stored as sent, or could not be undone.
// Source: docs/wire/import.md §2.9, §2.11, §3.9.

import type { WarningType } from '#core/events/warning-types.ts'
import { formatCount } from '#core/format-count.ts'
import type { UndoRefusal } from '#core/processing/imports/undoing.ts'
import { rowsErased } from './erased-rows.ts'
import type { JobReport } from './job-report.ts'

type NoteMessage = readonly [one: string, many: string, explanation: string]

const undoMessages = {
  'undo_left:merge_was_built_on': [
    'merge stays',
    'merges stay',
    'ids were linked to the merged person, or unlinked from it, from elsewhere since',
  ],
  'undo_left:link_was_confirmed': ['link stays', 'links stay', 'live data or another import links the same ids'],
  'undo_left:link_was_refused': [
    'later link is missing',
    'later links are missing',
    'it was refused because of a link of the import; it must be sent again',
  ],
  'undo_left:values_stay_with_survivor': [
    'merge is split, but later values stay with the other person',
    'merges are split, but later values stay with the other persons',
    'other events of the restored person have written them since',
  ],
  'undo_left:created_at_was_merged': [
    'time of creation stays as it is',
    'times of creation stay as they are',
    'a merge from elsewhere has taken it over',
  ],
  'undo_left:property_was_written': [
    'value stays as it is',
    'values stay as they are',
    'live data or another import has written the property since',
  ],
  'undo_left:outranked_value_is_missing': [
    'value of another import is missing',
    'values of other imports are missing',
    "this import's value had shadowed it, and there is no space for it: import that export again once there is",
  ],
  'undo_left:person_is_used': [
    'person that the import created stays',
    'persons that the import created stay',
    'events from outside the import use the person',
  ],
  'undo_left:link_is_used': [
    'distinct id stays with its person',
    'distinct ids stay with their persons',
    'events from outside the import use the id',
  ],
  'undo_left:group_is_used': [
    'group that the import created stays',
    'groups that the import created stay',
    'events from outside the import use the group',
  ],
  'undo_left:group_type_is_used': [
    'group type that the import created stays',
    'group types that the import created stay',
    'a flag, a group or events from outside the import use it',
  ],
  'undo_left:events_not_readable': [
    'person or group stays as it is',
    'persons and groups stay as they are',
    'other senders have sent too many events with it for the event store to separate them',
  ],
  'undo_left:person_is_gone': [
    'person is not put back',
    'persons are not put back',
    'it was merged into another or deleted since',
  ],
  'undo_left:group_is_gone': ['group is not put back', 'groups are not put back', 'it was deleted since'],
} satisfies Record<UndoRefusal, NoteMessage>

const otherMessages: Partial<Record<WarningType, NoteMessage>> & Readonly<Record<string, NoteMessage>> = {
  recent: ['event is recent', 'events are recent', 'from the last 48 hours, stored like all others and not charged'],
  cannot_merge_already_identified: [
    'link is not made',
    'links are not made',
    'both ids belong to persons who are already identified',
  ],
  cannot_merge_too_many_distinct_ids: ['link is not made', 'links are not made', 'the person has too many ids'],
  cannot_merge_with_illegal_distinct_id: ['link is not made', 'links are not made', 'the id cannot stand for a person'],
  person_properties_size_violation: [
    'change of a person is left out',
    'changes of persons are left out',
    'the properties would be too large',
  ],
  group_properties_size_violation: [
    'change of a group is left out',
    'changes of groups are left out',
    'the properties would be too large',
  ],
  group_type_deleted: ['group is left out', 'groups are left out', 'their type was deleted since'],
  group_type_refused: ['group is left out', 'groups are left out', 'the project accepts no further group type'],
  event_name_truncated: ['event name is truncated', 'event names are truncated', 'it was too long'],
  distinct_id_truncated: ['distinct id is truncated', 'distinct ids are truncated', 'it was too long'],
  rows_fewer_than_stored: [
    'fewer row than was stored',
    'fewer rows than were stored',
    'events sent again count once, and events of erased persons are gone; otherwise the event store has lost some',
  ],
  [rowsErased]: ['row is gone', 'rows are gone', 'persons were erased since the import was created'],
  rows_not_counted: [
    'row count is missing',
    'row counts are missing',
    'there are too many for the event store to count them',
  ],
  import_job_closed: ['event is not stored', 'events are not stored', 'it came after the job was closed'],
}

/**
 * @returns a sentence with the count, and the code that docs/import.md explains, such as `2 merges stay: … (undo_left:…).`;
 *   for an unknown code, the count and the code.
 */
export function formatNote({ reason, count }: Pick<JobReport['notes'][number], 'reason' | 'count'>): string {
  const message = findMessage(reason)
  if (message === null) return `${formatCount(count, 'time')}: ${reason}.`
  const [one, several, explanation] = message
  return `${formatCount(count, one, several)}: ${explanation} (${reason}).`
}

function findMessage(reason: string): NoteMessage | null {
  const all: Readonly<Record<string, NoteMessage>> = { ...undoMessages, ...otherMessages }
  return Object.hasOwn(all, reason) ? all[reason]! : null
}
