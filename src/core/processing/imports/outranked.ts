// What imports wrote beneath the values of one that is undone, which nobody kept: it is made again of their events, as if
// the undone one had never been published. Source: docs/wire/import.md §2.11, §3.4.

import type { SubjectImage } from '#core/imports/import-changes.ts'
import { type ImportOptions, usualOptions } from '#core/imports/import-job.ts'
import type { ImportedWrite, LaterWrite } from '#core/imports/other-use.ts'
import type { JsonObject } from '#core/json.ts'
import { emptyProfile, noKeys, type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { applyImportUpdate, mergeProfiles } from '#core/processing/properties/import-update.ts'
import { exceedsMarksLimit } from '#core/processing/properties/marks-limit.ts'
import { exceedsPersonLimit } from '#core/processing/properties/person-update.ts'
import { keysChanged, withLaterWrites } from './revert.ts'

/** An import that wrote after the undone one. */
export interface LaterWriter {
  readonly importJobId: number
  readonly options: ImportOptions
  /** When its publishing began, epoch ms. */
  readonly startMs: number
}

/** What one import wrote to a subject. */
export interface Outranked extends LaterWriter {
  readonly profile: Profile
}

/**
 * What imports wrote to a subject, in the order in which they were published. Those of days come first: they have no
 * place among the others, and no images.
 */
export function outrankedBy(writes: readonly ImportedWrite[], writers: readonly LaterWriter[]): Outranked[] {
  const ofJob = Map.groupBy(writes, ({ importJobId }) => importJobId)
  const placed = new Set(writers.map(({ importJobId }) => importJobId))
  const ofDays = [...ofJob.keys()]
    .filter(id => !placed.has(id))
    .map(importJobId => ({ importJobId, options: usualOptions, startMs: Number.POSITIVE_INFINITY }))
  return [...ofDays, ...writers].flatMap(writer => {
    const own = ofJob.get(writer.importJobId)
    return own === undefined ? [] : { ...writer, profile: own.reduce<Profile>(withWrite, emptyProfile) }
  })
}

function withWrite(profile: Profile, { op, key, value, timestampMs, uuid, importJobId }: ImportedWrite): Profile {
  const written: JsonObject = { [key]: value }
  return (
    applyImportUpdate(profile, {
      set: op === 'set' ? written : null,
      setOnce: op === 'set_once' ? written : null,
      unset: op === 'unset' ? [key] : noKeys,
      ...{ timestampMs, uuid, importJobId },
    }) ?? profile
  )
}

/** The profile with what these imports wrote to some of its keys. @returns `now` itself when that changes nothing. */
export function withOutranked<Now extends Profile>(
  now: Now,
  outranked: readonly Outranked[],
  isAsked: (key: string, by: Outranked) => boolean,
): Now {
  let joined: Profile = now
  for (const by of outranked) {
    const draft = new ProfileDraft(by.profile)
    for (const key of new Set([...Object.keys(by.profile.properties), ...Object.keys(by.profile.marks)]))
      if (!isAsked(key, by)) {
        draft.removeProperty(key)
        draft.removeMark(key)
      }
    joined = mergeProfiles(joined, draft.result() ?? by.profile, by.options)
  }
  return joined === now ? now : { ...now, properties: joined.properties, marks: joined.marks }
}

/**
 * The profile that is left of one from which a job was taken, with what live events and later imports would have made of it.
 * What these wrote beneath a live `$set_once` was there before it if they were published before it came.
 * @param former with the job's values.
 * @param laterWrites of live events.
 * @returns also keys that stay without what imports wrote to them, because that is too large.
 */
export function withWritesBeneath<Now extends Profile>(
  now: Now,
  former: Profile,
  laterWrites: readonly LaterWrite[],
  outranked: readonly Outranked[],
): { readonly subject: Now; readonly unsure: readonly string[]; readonly missing: readonly string[] } {
  const firstMs = new Map<string, number>()
  for (const { key, storedAtMs } of laterWrites)
    firstMs.set(key, Math.min(storedAtMs, firstMs.get(key) ?? Number.POSITIVE_INFINITY))
  const without = keysChanged(former, now)
  const wasEarlier = (key: string, { startMs }: Outranked) =>
    without.has(key) && Object.hasOwn(former.marks, key) && startMs <= (firstMs.get(key) ?? Number.NEGATIVE_INFINITY)
  const { subject, unsure } = withLaterWrites(withOutranked(now, outranked, wasEarlier), former, laterWrites)
  const left = keysChanged(former, subject)
  const all = withOutranked(subject, outranked, key => without.has(key) || left.has(key))
  if (all === now || !isTooLarge(all)) return { subject: all, unsure, missing: [] }
  const bare = withLaterWrites(now, former, laterWrites)
  return { ...bare, missing: [...keysChanged(bare.subject, all)] }
}

function isTooLarge({ properties, marks }: Profile): boolean {
  return exceedsPersonLimit(JSON.stringify(properties)) || exceedsMarksLimit(marks)
}

/** What an image has that was made when a job was undone: no person and no group has it. */
export const versionOfMade = -1

type Image = Extract<SubjectImage, { readonly kind: 'person' | 'group' }>

/** Which of the imports came before one of `laterJobIds`, and with it. Imports of days are in no image. */
function upTo(importJobId: number, outranked: readonly Outranked[], laterJobIds: readonly number[]) {
  const earlier = new Set(laterJobIds.slice(0, laterJobIds.indexOf(importJobId)))
  return {
    before: outranked.filter(by => earlier.has(by.importJobId)),
    after: outranked.filter(by => earlier.has(by.importJobId) || by.importJobId === importJobId),
  }
}

/**
 * The reverted image of a later job, with what imports wrote beneath the undone one until then.
 * @param undone the undone job's own image. An image that was made when a job was undone has nothing of it to be reverted.
 */
export function imageWithOutranked<Of extends Image>(
  former: Of,
  reverted: Of,
  undone: Image,
  outranked: readonly Outranked[],
  laterJobIds: readonly number[],
): Of {
  const until = upTo(reverted.importJobId, outranked, laterJobIds)
  const isMade = reverted.after?.version === versionOfMade
  const written = keysChanged(undone.before ?? emptyProfile, undone.after ?? emptyProfile)
  const side = (was: Profile | null, is: Profile | null, writers: readonly Outranked[]) => {
    if (was === null || is === null || writers.length === 0) return is
    const changed = isMade ? written : keysChanged(was, is)
    return changed.size === 0 ? is : withOutranked(is, writers, key => changed.has(key))
  }
  return {
    ...reverted,
    before: side(former.before, reverted.before, until.before),
    after: side(former.after, reverted.after, until.after),
  }
}

/**
 * The profiles before and after an import of which no image was kept, because all that it wrote was beneath the undone job;
 * of the keys that the undone one wrote only. Null when it changed nothing of these.
 */
export function sidesOf(
  importJobId: number,
  { before, after }: { readonly before: Profile | null; readonly after: Profile },
  outranked: readonly Outranked[],
  laterJobIds: readonly number[],
): { readonly before: Profile; readonly after: Profile } | null {
  const base = before ?? emptyProfile
  const written = keysChanged(base, after)
  const draft = new ProfileDraft({ properties: base.properties, marks: base.marks })
  for (const key of [...Object.keys(base.properties), ...Object.keys(base.marks)])
    if (!written.has(key)) {
      draft.removeProperty(key)
      draft.removeMark(key)
    }
  const { properties, marks } = draft.result() ?? base
  const until = upTo(importJobId, outranked, laterJobIds)
  const was = withOutranked({ properties, marks }, until.before, key => written.has(key))
  const became = withOutranked({ properties, marks }, until.after, key => written.has(key))
  return keysChanged(was, became).size === 0 ? null : { before: was, after: became }
}
