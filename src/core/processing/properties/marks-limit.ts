// Limits how much an import's marks may add to a person or a group. Marks outlive the values that they describe: `$unset`
// leaves a mark even for a key that never existed, and a replaced `$set_once` stays hidden under the visible value. Source:
// docs/wire/import.md 3.4 R5; the limit is ours.

import type { PropertyMarks } from '#core/persons/person.ts'
import { type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { personPropertiesBytesMax } from './person-update.ts'

/** The most marks that a person or group may have: they are copied for each of its events. */
const marksMax = 10_000

/** Whether there are too many marks to be stored, or the hidden values are too large. */
export function exceedsMarksLimit(marks: PropertyMarks): boolean {
  const keys = Object.keys(marks)
  if (keys.length > marksMax) return true
  let length = 0
  for (const key of keys) {
    const value = marks[key]!.once?.value
    length += key.length
    if (value !== undefined) length += JSON.stringify(value).length
    if (length > personPropertiesBytesMax) return true
  }
  return false
}

/** Whether an event removes so many properties that the marks of these removals alone would exceed the limit. */
export function exceedsUnsetLimit(unset: readonly string[]): boolean {
  return unset.length > marksMax
}

/** Drops the marks of keys without a value, so that two persons can be merged however many properties imports removed. */
export function trimPropertyMarks(profile: Profile): Profile {
  if (!exceedsMarksLimit(profile.marks)) return profile
  const draft = new ProfileDraft(profile)
  for (const key of Object.keys(profile.marks)) if (!Object.hasOwn(profile.properties, key)) draft.removeMark(key)
  return draft.result() ?? profile
}
