// Which notes of converters are worth a warning, in words. Source: docs/wire/import.md §1.1 to §1.9, §2.7.

import { formatCount } from '#core/format-count.ts'
import { compareTexts } from './event-counts.ts'
import type { Warning } from './rehearsal-report.ts'
import { formatPercent } from './suspicions.ts'

/** A record has such a note once. */
const ofRecords: Readonly<Record<string, (count: string, detail: string, isOne: boolean) => string>> = {
  amplitude_id_used: (count, _, isOne) =>
    `${count} ${isOne ? 'has neither a user nor a device id, so it is of its' : 'have neither a user nor a device id, so they are of their'} amplitude_id.`,
  zone_shift_differs: (count, _, isOne) =>
    `${count} ${isOne ? 'was' : 'were'} received at another hour than the zone of the source says.`,
  groups_without_dollar: (count, _, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} groups and no $groups, so no filter finds them. Rename with --promote-groups.`,
  type_mismatch: (count, detail, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} a value in ${detail} that is not of the type that the mapping gives it; it stays as it is.`,
  csv_quotes: (count, detail, isOne) =>
    `${count} ${isOne ? 'is a row' : 'are rows'} of CSV that can be read in two ways: a backslash before a quote was taken for ${detail === 'escaped' ? 'an escape' : 'itself'}, which fits more rows in the beginning of the file. In the other way ${isOne ? 'it has' : 'they have'} other cells, or ${isOne ? 'is' : 'are'} several rows. Compare one with the file.`,
  spread_no_object: (count, detail, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} something else than an object in ${detail}, whose members spread makes properties; it stays as it is.`,
  person_data_left_out: (count, _, isOne) =>
    `${count} ${isOne ? 'loses what it says of its' : 'lose what they say of their'} person ($set, $set_once, $unset); "Not carried over" has each property. Planned with --keep-person-data ${isOne ? 'it keeps' : 'they keep'} it.`,
  group_key_illegal: (count, detail, isOne) =>
    `${count} ${isOne ? 'has' : 'have'} a value in ${detail} that is no key of a group, neither text nor a number; ${isOne ? 'it belongs' : 'they belong'} to none of its type.`,
  invalid_uuid: (count, _, isOne) =>
    `${count} ${isOne ? 'has an id that is no UUID; it gets' : 'have an id that is no UUID; they get'} one made of it.`,
}

/** A record has such a note for each of its groups or actions that is meant. */
const ofTheirParts: Readonly<Record<string, (count: number, detail: string) => string>> = {
  group_values_dropped: count =>
    `${formatCount(count, 'group is', 'groups are')} not told with their event, which may have one of each type.`,
  group_key_too_long: count =>
    `${formatCount(count, 'group has', 'groups have')} a key that is too long; nothing is told of such groups.`,
  matomo_goal_left_out: count =>
    `${formatCount(count, 'action is a goal, which gives no event of its own', 'actions are goals, which give no events of their own')}: the action that reached a goal tells of it too.`,
  matomo_type_unknown: (count, detail) =>
    `${formatCount(count, 'action is', 'actions are')} of the type ${detail}, which is not known.`,
}

/**
 * @param notes how often each came, as `name` or `name:detail`.
 * @param records that give events.
 */
export function noteWarnings(notes: ReadonlyMap<string, number>, records: number): readonly Warning[] {
  return [...notes]
    .toSorted(([a], [b]) => compareTexts(a, b))
    .flatMap(([note, count]) => {
      const [, code = '', detail = ''] = /^([^:]*):?(.*)$/s.exec(note) ?? []
      const share = `${formatCount(count, 'record')} (${formatPercent(count / records)})`
      const text = ofRecords[code]?.(share, detail, count === 1) ?? ofTheirParts[code]?.(count, detail)
      return text === undefined ? [] : [{ code, text }]
    })
}
