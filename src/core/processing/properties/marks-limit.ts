// A bound for what an import's marks may add to a person or a group. Marks outlive the values that they tell of: `$unset`
// leaves one for a key that was never there, and a replaced `$set_once` stays beneath the value that is shown.
// Source: docs/wire/import.md 3.4 R5; the bound is a decision of ours.

import type { PropertyMarks } from '#core/persons/person.ts'
import { type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { personPropertiesBytesMax } from './person-update.ts'

/** Marks are copied with each event of the person. */
const marksMax = 10_000

/** Whether there are too many marks to be stored, or too much beneath the values that are shown. */
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

/** Whether an event takes back so many properties that their marks alone would be too many. */
export function exceedsUnsetLimit(unset: readonly string[]): boolean {
  return unset.length > marksMax
}

/** Drops the marks of keys that have no value, so that two persons can be merged whatever imports took back of them. */
export function trimMarks(profile: Profile): Profile {
  if (!exceedsMarksLimit(profile.marks)) return profile
  const draft = new ProfileDraft(profile)
  for (const key of Object.keys(profile.marks)) if (!Object.hasOwn(profile.properties, key)) draft.removeMark(key)
  return draft.result() ?? profile
}
