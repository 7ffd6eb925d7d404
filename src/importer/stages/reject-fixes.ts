// What can be done about records that are refused or left out. Source: docs/wire/import.md §2.6.

import type { RejectReason, SkipReason } from '../records/imported-event.ts'
import { findDropFix } from '../records/service-drops.ts'

const fixes: Record<Exclude<RejectReason, `server_refused:${string}`>, string> = {
  compressed_input: 'Unpack the file, or give the packed file itself and not a text made of it.',
  encoding_invalid_utf8: 'Export the file as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8.',
  truncated_record: 'The file ends in the middle of a record. Export or download it again.',
  record_too_large: 'An event may have 1 MB. Leave out large properties, or split the record.',
  json_syntax: 'Repair the JSON of the record, or export it again.',
  json_not_object: 'A record has to be an object in braces: {"event": …}.',
  csv_column_count: 'Put cells that hold commas or line breaks into quotes, or repair the row.',
  properties_not_object: 'The properties have to be an object, or a text that holds one.',
  event_missing: 'Give the record the name of its event.',
  event_not_string: 'The name of an event has to be a text.',
  event_name_too_long: 'Shorten the name of the event to 200 characters.',
  distinct_id_missing: 'Say who did it: fill the field of the user or of the device.',
  distinct_id_illegal: 'The id is a text that stands for nobody, such as "undefined". Put the true one there.',
  distinct_id_too_long: 'Shorten the id to 200 characters, the same way everywhere.',
  timestamp_missing: 'Say when it happened: fill the field of the time.',
  timestamp_invalid: 'Write the time as 2024-05-01T12:00:00Z or as a number since 1970.',
  timestamp_zone_unknown: 'The time names no zone. Set source_timezone, such as Europe/Berlin.',
  timestamp_out_of_range: 'The time is before 1971: often seconds that were taken for milliseconds. Correct it.',
  timestamp_future: 'The time is after the import: often a wrong clock or a wrong unit. Correct it.',
  within_live_window: 'It is younger than 48 hours. Import it later, or without --hold-live-window.',
  older_than_retention: 'The target deletes events as old as this. Change its retention, or leave them out.',
  unsupported_event: 'Events of this kind cannot be imported; nothing has to be done.',
  merge_needs_approval: 'It joins two known users, which cannot be undone. Allow it with --allow-dangerous-merge.',
  group_type_limit: 'The target has no more group types. Use fewer of them.',
}

/** Beside the above for records that a mapping of the user describes: that can be mended, and the records need not be. */
const mappedFixes: Partial<Record<RejectReason, string>> = {
  event_missing: 'Give the record the name of its event, or set event_constant in the mapping.',
  distinct_id_missing: 'Say who did it: fill the field of the user or of the device, or map another one.',
  distinct_id_illegal: 'The id is a text that stands for nobody, such as "undefined". Map another field.',
  timestamp_missing: 'Say when it happened: fill the field of the time, or map another one.',
  timestamp_invalid:
    'Write the time as 2024-05-01T12:00:00Z or as a number since 1970; for dates such as 05/01/2024, set date_order in the mapping.',
  timestamp_out_of_range: 'The time is before 1971: often seconds that were taken for milliseconds. Set unit.',
  group_type_limit: 'The target has no more group types. Map groups to fewer types.',
}

const skips: Record<SkipReason, string> = {
  session_marker: 'begins or ends a session; sessions are kept as $session_id of the events',
  goal_conversion_duplicate: 'a goal, which the action that reached it tells of too',
  destination_disabled: 'its sender did not want it in PostHog',
  blank_line: 'an empty line',
  filtered: 'left out by the mapping, or it says nothing',
  visit_without_actions: 'a visit without actions',
  duplicate_in_source: 'the source exported it twice, or it stands in another table too',
  differs_in_source:
    'of the id, event, time and person of another record that says something else; the first one is sent, and the project can keep no more than one',
}

/** In place of the above for sources that leave records out for a reason of their own. */
const ownSkips: Readonly<Record<string, Partial<Record<SkipReason, string>>>> = {
  ga4: {
    filtered:
      'of a day that began less than settle_days ago (4 unless set), whose table still changes; import them when they are older, or set settle_days',
  },
}

/** What a detail shows beyond its reason. */
const detailFixes: readonly (readonly [reason: RejectReason, detail: RegExp, fix: string])[] = [
  ['compressed_input', /damaged/, 'The bytes of the file are damaged. Export or download it again.'],
  ['csv_column_count', /backslashes/, 'Write the quotes of the whole file in one way, or repair the row.'],
  ['encoding_invalid_utf8', /UTF-16/, 'Export the file as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8.'],
]

/**
 * @param reason also `server_refused:<reason>`. @param source of the record: only some have a mapping to mend.
 * @param detail of the reject, which may tell two causes of one reason apart.
 */
export function fixOf(
  reason: RejectReason | `server_refused:${string}`,
  source: string,
  detail: string | null = null,
): string {
  const ofDetail = detailFixes.find(([of, pattern]) => of === reason && detail !== null && pattern.test(detail))
  if (ofDetail !== undefined) return ofDetail[2]
  if (isServerRefused(reason))
    return findDropFix(reason) ?? 'The server refused it in these words. Correct it, then: pennon import retry.'
  return (source === 'generic' ? mappedFixes[reason] : undefined) ?? fixes[reason]
}

function isServerRefused(reason: string): reason is `server_refused:${string}` {
  return reason.startsWith('server_refused:')
}

/** @param source of the record. @returns what a skipped record is, to be read after its count. */
export function skipMessage(reason: SkipReason, source: string): string {
  return ownSkips[source]?.[reason] ?? skips[reason]
}
