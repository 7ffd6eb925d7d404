// Reverts a job's changes to a person or a group: in the current row, and in the undo records by which later jobs will be
// undone. Reverts key by key, and only keys that are still as the job left them.

import type { LaterWrite } from '#core/imports/other-use.ts'
import { type JsonValue, ownValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import type { PropertyMark } from '#core/persons/person.ts'
import { emptyProfile, type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { registersOf } from '#core/processing/properties/import-registers.ts'
import { filteredProperties } from '#core/processing/properties/mapped-properties.ts'

/** The parts of a person that are reverted; groups lack the last two. */
export interface Subject extends Profile {
  readonly createdAtMs: number
  readonly isIdentified?: boolean
  readonly lastSeenAtMs?: number
}

/** A profile before and after the job; null where it did not exist. */
export interface Sides {
  readonly before: Profile | null
  readonly after: Profile
}

/** Values that may have been joined with the job's since, because persons were merged or other imports' values are hidden. */
export interface Joined {
  /** The profile before the job, joined with those of the persons that have been merged with it since. */
  readonly before: Profile | null
  /** The profiles of all these persons after the job, and the values that other imports wrote. */
  readonly others: readonly Profile[]
}

/**
 * The profile without the job's changes: a key that is still as the job left it returns to its earlier state.
 * @returns `now` itself if nothing is reverted; `left`: the keys that other writers have changed since.
 */
export function revertedProfile<Now extends Profile>(
  now: Now,
  { before, after }: Sides,
  joined: Joined,
): { readonly subject: Now; readonly left: string[] } {
  const draft = new ProfileDraft({ properties: now.properties, marks: now.marks })
  const left: string[] = []
  for (const key of keysChanged(before ?? emptyProfile, after)) {
    const [was, wasJoined, became, is] = [before ?? emptyProfile, joined.before ?? emptyProfile, after, now].map(
      profile => readKeyState(profile, key),
    ) as [KeyState, KeyState, KeyState, KeyState]
    if (isSameKey(is, was) || isSameKey(is, wasJoined)) continue
    if (!isSameKey(is, became) && !(isSameKeyState(became, is) && isJoinOf([after, ...joined.others], key, now))) {
      left.push(key)
      continue
    }
    if (wasJoined.value === undefined) draft.removeProperty(key)
    else draft.setProperty(key, wasJoined.value)
    if (wasJoined.mark === undefined) draft.removeMark(key)
    else draft.setMark(key, wasJoined.mark)
  }
  const profile = draft.result()
  return { subject: profile ? { ...now, properties: profile.properties, marks: profile.marks } : now, left }
}

/**
 * The subject without the job's changes.
 * @param before null if the job created the subject.
 * @returns `now` itself if nothing is reverted.
 */
export function revertSubject<Now extends Subject>(
  now: Now,
  before: Subject | null,
  after: Subject,
  joined: Joined = { before, others: [] },
): { subject: Now; left: string[] } {
  const { subject, left } = revertedProfile(now, { before, after }, joined)
  const wasLower = before !== null && now.createdAtMs === after.createdAtMs
  const createdAtMs = wasLower ? before.createdAtMs : now.createdAtMs
  const lastSeenAtMs =
    before?.lastSeenAtMs !== undefined && now.lastSeenAtMs === after.lastSeenAtMs
      ? before.lastSeenAtMs
      : now.lastSeenAtMs
  const isIdentified =
    now.isIdentified === true && after.isIdentified === true ? before?.isIdentified === true : now.isIdentified
  const isSame =
    subject === now &&
    createdAtMs === now.createdAtMs &&
    lastSeenAtMs === now.lastSeenAtMs &&
    isIdentified === now.isIdentified
  if (isSame) return { subject: now, left }
  const ofPersons = lastSeenAtMs === undefined ? {} : { lastSeenAtMs, isIdentified }
  return { subject: { ...subject, createdAtMs, ...ofPersons }, left }
}

/** The profile with only some of its keys. */
export function pickProfile(profile: Profile, isPicked: (key: string) => boolean): Profile {
  const draft = new ProfileDraft({ properties: profile.properties, marks: profile.marks })
  for (const key of keysOf(profile))
    if (!isPicked(key)) {
      draft.removeProperty(key)
      draft.removeMark(key)
    }
  return draft.result() ?? profile
}

/** The keys that have a value after but not before. */
export function keysAdded(before: Profile | null, after: Profile): string[] {
  return Object.keys(after.properties).filter(key => before === null || !Object.hasOwn(before.properties, key))
}

/** The keys whose value or mark differs. */
export function keysChanged(before: Profile, after: Profile): Set<string> {
  const keys = [...keysOf(before, after)]
  return new Set(keys.filter(key => !isSameKey(readKeyState(before, key), readKeyState(after, key))))
}

/**
 * The profile with the writes of live events that had no effect because of the job: `$set_once` of keys that existed only
 * because of it, `$set` of the value that a merge of the job had already brought or of a key whose change alone is not
 * written, and `$unset` of keys that the job had removed.
 * @param former the profile with the job's values.
 * @param laterWrites in the order in which they were stored.
 * @param own the profile without the values of imports hidden by the job's. If a key had the job's value in spite of an
 *   `$unset`, a later merge brought that value, and also the key's value here.
 * @returns also `unsure`: keys that could have one of several values.
 */
export function withLaterWrites<Now extends Profile>(
  now: Now,
  former: Profile,
  laterWrites: readonly LaterWrite[],
  own: Profile = now,
): { readonly subject: Now; readonly unsure: readonly string[] } {
  const draft = new ProfileDraft({ properties: now.properties, marks: now.marks })
  const unwritten = new Set<string>()
  const unsure = new Set<string>()
  const writers = new Set<string>()
  for (const write of laterWrites) {
    const { op, key, value, uuid } = write
    const isThere = Object.hasOwn(draft.properties, key)
    const wasThere = Object.hasOwn(former.properties, key)
    if (op === 'unset') {
      const hasComeLater = wasThere && isSameKey(readKeyState(own, key), readKeyState(draft, key))
      if (!isThere || hasComeLater) continue
      writers.add(uuid)
      draft.removeProperty(key)
      draft.removeMark(key)
    } else if (!wasThere) {
    } else if (op === 'set') {
      if (Object.hasOwn(former.marks, key)) continue
      const isSame = isSameJson(former.properties[key], value)
      const fills = filteredProperties.has(key) && (!isThere || Object.hasOwn(draft.marks, key))
      if (!isSame && !fills) continue
      if (isSame && unwritten.has(key)) unsure.add(key)
      if (!isSame) unwritten.add(key)
      if (!isSameJson(draft.properties[key], value)) writers.add(uuid)
      draft.setProperty(key, value)
      draft.removeMark(key)
    } else if (!isThere) {
      writers.add(uuid)
      draft.setProperty(key, value)
      draft.setMark(key, liveOnce(write))
    }
  }
  if (writers.size > 0) {
    const isAside = ({ op, key }: LaterWrite) =>
      op === 'set' && filteredProperties.has(key) && Object.hasOwn(draft.properties, key) && !unwritten.has(key)
    for (const [key, writes] of Map.groupBy(laterWrites.filter(isAside), write => write.key))
      if (!setFilteredProperty(draft, key, writes, writers)) unsure.add(key)
  }
  const { properties, marks } = draft.result() ?? now
  return { subject: draft.changed ? { ...now, properties, marks } : now, unsure: [...unsure] }
}

/**
 * The profile with the additions of live events that also name the key in `$unset`: such an event removes an existing
 * value, or else keeps the value it adds. Because of the job's value, such an event only removed the key, and its own
 * value is missing.
 * @param gone keys that had only the job's value, and now have none.
 * @param wasBeneath whether an import had written the key before the event.
 */
export function withAddsOfUnsets<Now extends Profile>(
  now: Now,
  gone: readonly string[],
  laterWrites: readonly LaterWrite[],
  wasBeneath: (unset: LaterWrite) => boolean,
): Now {
  const draft = new ProfileDraft({ properties: now.properties, marks: now.marks })
  const writesOf = Map.groupBy(laterWrites, ({ key }) => key)
  for (const key of gone) {
    if (Object.hasOwn(draft.properties, key)) continue
    const writes = writesOf.get(key) ?? []
    const unset = writes.find(({ op }) => op === 'unset')
    const added = writes.find(({ op }) => op === 'set') ?? writes.find(({ op }) => op === 'set_once')
    // If other events wrote the key, the `$unset` would have had another value to remove, or a later one would have
    // removed the key.
    if (unset === undefined || added === undefined || writes.some(({ uuid }) => uuid !== unset.uuid)) continue
    if (wasBeneath(unset)) continue
    draft.setProperty(key, added.value)
    if (added.op === 'set') draft.removeMark(key)
    else draft.setMark(key, liveOnce(added))
  }
  const { properties, marks } = draft.result() ?? now
  return draft.changed ? { ...now, properties, marks } : now
}

function liveOnce({ timestampMs, uuid }: LaterWrite): PropertyMark {
  return { kind: 'live_once', timestampMs, uuid, importJobId: 0 }
}

/**
 * Sets a key whose change alone is not written, if its events would have written other keys without the job.
 * @param writers the events that would have written other keys. Of several events with the same value, only the first
 * is known.
 * @returns whether the value is certain.
 */
function setFilteredProperty(
  draft: ProfileDraft,
  key: string,
  writes: readonly LaterWrite[],
  writers: ReadonlySet<string>,
): boolean {
  if (writes.every(({ value }) => isSameJson(value, draft.properties[key]))) return true
  const last = writes.findLast(({ uuid }) => writers.has(uuid))
  if (last !== undefined) {
    draft.setProperty(key, last.value)
    draft.removeMark(key)
  }
  return last !== undefined && writes.length === 1
}

/**
 * Among the keys whose change alone is not written, those that live events might have changed without the job. Such an
 * event also has a `$set_once` that the job's value blocked. If other events have written that key since, it is unknown
 * whether the `$set_once` would have been written, and with it the key.
 * @param left the keys that the job and others have written.
 */
export function findUncertainKeys(
  { properties }: Profile,
  left: readonly string[],
  laterWrites: readonly LaterWrite[],
): readonly string[] {
  if (!laterWrites.some(({ op, key }) => op === 'set_once' && left.includes(key))) return []
  return laterWrites.flatMap(({ op, key, value }) =>
    op === 'set' && filteredProperties.has(key) && Object.hasOwn(properties, key) && !isSameJson(properties[key], value)
      ? key
      : [],
  )
}

export function keysOf(...profiles: readonly Profile[]): Set<string> {
  return new Set(profiles.flatMap(({ properties, marks }) => [...Object.keys(properties), ...Object.keys(marks)]))
}

interface KeyState {
  readonly value: JsonValue | undefined
  readonly mark: Profile['marks'][string] | undefined
}

function readKeyState({ properties, marks }: Profile, key: string): KeyState {
  return { value: ownValue(properties, key), mark: Object.hasOwn(marks, key) ? marks[key] : undefined }
}

/** Whether the visible value is the one that the job wrote, whatever it hides. */
export function showsValueOf(now: Profile, after: Profile, key: string): boolean {
  return isSameKeyState(readKeyState(after, key), readKeyState(now, key))
}

function isSameKeyState({ value, mark }: KeyState, is: KeyState): boolean {
  if (mark === undefined || is.mark === undefined || !isSameJson(value, is.value)) return false
  return mark.kind === is.mark.kind && mark.timestampMs === is.mark.timestampMs && mark.uuid === is.mark.uuid
}

/** Whether an import wrote the key, and every event in its mark is also in the marks of these profiles. */
export function isJoinOf(profiles: readonly Profile[], key: string, now: Profile): boolean {
  const parts = profiles.flatMap(profile => registerTimes(profile, key))
  const times = registerTimes(now, key)
  return times.length > 0 && times.every(time => parts.some(part => isSameJson(part, time)))
}

function registerTimes(profile: Profile, key: string) {
  const { mark, value } = readKeyState(profile, key)
  if (mark === undefined || mark.kind === 'live_once') return []
  const { latest, once } = registersOf(mark, value)
  return [latest, once].flatMap((time, place) =>
    time === null ? [] : { place, timestampMs: time.timestampMs, uuid: time.uuid },
  )
}

function isSameKey(a: KeyState, b: KeyState): boolean {
  return isSameJson(a.value, b.value) && isSameJson(a.mark as JsonValue | undefined, b.mark as JsonValue | undefined)
}
