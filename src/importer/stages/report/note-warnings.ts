// Warnings for notes of converters that users should know about. Source: docs/wire/import.md §1.1 to §1.9, §2.7.

import { formatCount } from '#core/format-count.ts'
import { compareTexts } from './event-counts.ts'
import type { Warning } from './rehearsal-report.ts'
import { formatPercent } from './suspicions.ts'

/** Notes that a record has at most once. */
const ofRecords: Readonly<Record<string, (count: string, detail: string, isOne: boolean) => string>> = {
  amplitude_id_used: (count, _, isOne) =>
    `${count} ${isOne ? 'has neither a user nor a device id, so its' : 'have neither a user nor a device id, so their'} amplitude_id is used.`,
  zone_shift_differs: (count, _, isOne) =>
    `${count} ${isOne ? 'was' : 'were'} received at an hour that does not fit the zone of the source.`,
  groups_without_dollar: (count, _, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} the property groups but no $groups, so filters by group do not find them. Rename it with --promote-groups.`,
  type_mismatch: (count, detail, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} a value in ${detail} that does not have the type given in the mapping; it is kept unchanged.`,
  csv_quotes: (count, detail, isOne) =>
    `${count} ${isOne ? 'is a row' : 'are rows'} of CSV that can be read in two ways: a backslash before a quote was read as ${detail === 'escaped' ? 'an escape' : 'a plain character'}, which fits more rows at the beginning of the file. Read the other way, ${isOne ? 'it has' : 'they have'} other cells, or ${isOne ? 'is' : 'are'} several rows. Compare one with the file.`,
  spread_no_object: (count, detail, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} a value other than an object in ${detail}, so spread cannot turn its members into properties; it is kept unchanged.`,
  person_data_left_out: (count, _, isOne) =>
    `${count} ${isOne ? 'loses its changes' : 'lose their changes'} of person properties ($set, $set_once, $unset); "Not carried over" lists each property. To keep them, plan with --keep-person-data.`,
  group_key_illegal: (count, detail, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} a value in ${detail} that cannot be the key of a group, since it is neither text nor a number; ${isOne ? 'it belongs' : 'they belong'} to no group of this type.`,
  invalid_uuid: (count, _, isOne) =>
    `${count} ${isOne ? 'has an id that is not a UUID; it gets a UUID' : 'have an id that is not a UUID; they get a UUID'} derived from it.`,
}

/** Notes that a record has once for each group or action concerned. */
const ofTheirParts: Readonly<Record<string, (count: number, detail: string) => string>> = {
  group_values_dropped: count =>
    `${formatCount(count, 'group is', 'groups are')} left out of their event, which can have only one group of each type.`,
  group_key_too_long: count =>
    `${formatCount(count, 'group has', 'groups have')} a key that is too long; such groups are left out.`,
  matomo_goal_left_out: count =>
    `${formatCount(count, 'action is a goal, which gives no separate event', 'actions are goals, which give no separate events')}: the action that reached a goal says so too.`,
  matomo_type_unknown: (count, detail) =>
    `${formatCount(count, 'action is', 'actions are')} of the unknown type ${detail}.`,
}

/**
 * @param notes how often each occurred, by `name` or `name:detail`.
 * @param records how many produce events.
 */
export function createNoteWarnings(notes: ReadonlyMap<string, number>, records: number): readonly Warning[] {
  return [...notes]
    .toSorted(([a], [b]) => compareTexts(a, b))
    .flatMap(([note, count]) => {
      const [, code = '', detail = ''] = /^([^:]*):?(.*)$/s.exec(note) ?? []
      const share = `${formatCount(count, 'record')} (${formatPercent(count / records)})`
      const text = ofRecords[code]?.(share, detail, count === 1) ?? ofTheirParts[code]?.(count, detail)
      return text === undefined ? [] : [{ code, text }]
    })
}
