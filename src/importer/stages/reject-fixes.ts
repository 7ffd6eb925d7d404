// Remedies for rejected records, and explanations of skipped records. Source: docs/wire/import.md §2.6.

import type { RecordRejectReason, SkipReason } from '../records/imported-event.ts'
import { findServiceDropFix } from '../records/service-drops.ts'

const fixes: Record<Exclude<RecordRejectReason, `server_refused:${string}`>, string> = {
  compressed_input: 'Decompress the file, or pass the compressed file itself instead of a text made from it.',
  encoding_invalid_utf8: 'Export the file as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8.',
  truncated_record: 'The file ends in the middle of a record. Export or download it again.',
  record_too_large: 'An event can have at most 1 MB. Leave out large properties, or split the record.',
  json_syntax: 'Repair the JSON of the record, or export it again; if the file is CSV, plan it with --format csv.',
  json_not_object: 'A record must be an object in braces: {"event": …}.',
  csv_column_count: 'Quote cells that contain commas or line breaks, or repair the row.',
  properties_not_object: 'The properties must be an object, or a text that contains one.',
  event_missing: 'Add the name of the event to the record.',
  event_not_string: 'The name of an event must be a text.',
  event_name_too_long: 'Shorten the name of the event to 200 characters.',
  distinct_id_missing: 'Fill in the field of the user or the device.',
  distinct_id_illegal: 'The id does not stand for a person, such as "undefined". Replace it with the real one.',
  distinct_id_too_long: 'Shorten the id to 200 characters, in the same way everywhere.',
  timestamp_missing: 'Fill in the field of the time.',
  timestamp_invalid: 'Write the time as 2024-05-01T12:00:00Z or as a number since 1970.',
  timestamp_zone_unknown: 'The time has no zone. Set it: --source-timezone Europe/Berlin, for example.',
  timestamp_out_of_range: 'The time is before 1971: often seconds that were read as milliseconds. Correct it.',
  timestamp_future: 'The time is after the import: often a wrong clock or a wrong unit. Correct it.',
  within_live_window: 'The event is from the last 48 hours. Import it later, or without --hold-live-window.',
  older_than_retention:
    'The target deletes events of this age. Leave them out; or change its retention, and plan with more --retention-days.',
  unsupported_event: 'Events of this kind cannot be imported; there is nothing to do.',
  merge_needs_approval:
    'The event merges two identified users, which cannot be undone. Allow it with --allow-dangerous-merge.',
  group_type_limit: 'The target accepts no more group types. Use fewer group types.',
}

/** Remedies for records that a user's mapping describes: the mapping can be changed instead of the records. */
const mappedFixes: Partial<Record<RecordRejectReason, string>> = {
  event_missing: 'Add the name of the event to the record, or set event_constant in the mapping.',
  distinct_id_missing: 'Fill in the field of the user or the device, or map another field.',
  distinct_id_illegal: 'The id does not stand for a person, such as "undefined". Map another field.',
  timestamp_missing: 'Fill in the field of the time, or map another field.',
  timestamp_invalid:
    'Write the time as 2024-05-01T12:00:00Z or as a number since 1970; for dates such as 05/01/2024, set date_order in the mapping.',
  timestamp_out_of_range: 'The time is before 1971: often seconds that were read as milliseconds. Set unit.',
  group_type_limit: 'The target accepts no more group types. Map groups to fewer types.',
}

const skips: Record<SkipReason, string> = {
  session_marker: 'begins or ends a session; sessions are kept as the $session_id of events',
  goal_conversion_duplicate: 'a goal, which is also recorded with the action that reached it',
  destination_disabled: 'its sender excluded it from PostHog',
  blank_line: 'an empty line',
  filtered: 'left out by the mapping, or empty of information',
  visit_without_actions: 'a visit without actions',
  duplicate_in_source: 'exported twice by the source, or also in another table',
  differs_in_source:
    'has the id, event, time and person of another record but differs in other fields; the first one is sent, since the project can keep only one',
}

/** Overrides for sources that skip records for specific reasons. */
const ownSkips: Readonly<Record<string, Partial<Record<SkipReason, string>>>> = {
  ga4: {
    filtered:
      'from a day that began less than settle_days ago (default 4), whose table still changes; import them when they are older, or set settle_days',
  },
}

/** More specific remedies that depend on the detail of a reject. */
const detailFixes: readonly (readonly [reason: RecordRejectReason, detail: RegExp, fix: string])[] = [
  ['compressed_input', /damaged/, 'The bytes of the file are damaged. Export or download it again.'],
  ['csv_column_count', /backslashes/, 'Escape quotes in the same way in the whole file, or repair the row.'],
  ['encoding_invalid_utf8', /UTF-16/, 'Export the file as UTF-8, or convert it: iconv -f UTF-16 -t UTF-8.'],
]

/**
 * @param source of the record; only a generic source has a mapping to change.
 * @param detail of the reject, which may distinguish causes with the same reason.
 */
export function findRejectFix(
  reason: RecordRejectReason | `server_refused:${string}`,
  source: string,
  detail: string | null = null,
): string {
  const ofDetail = detailFixes.find(([of, pattern]) => of === reason && detail !== null && pattern.test(detail))
  if (ofDetail !== undefined) return ofDetail[2]
  if (isServerRefused(reason))
    return findServiceDropFix(reason) ?? 'The server refused it for this reason. Correct it, then: pennon import retry.'
  return (source === 'generic' ? mappedFixes[reason] : undefined) ?? fixes[reason]
}

function isServerRefused(reason: string): reason is `server_refused:${string}` {
  return reason.startsWith('server_refused:')
}

/** @param source of the record. @returns an explanation to follow the number of such records. */
export function explainSkip(reason: SkipReason, source: string): string {
  return ownSkips[source]?.[reason] ?? skips[reason]
}
