// Values of imports that were shadowed by those of an undone import. They are not stored, so they are recomputed from the
// imports' events, as if the undone import had never been published. Source: docs/wire/import.md §2.11, §3.4.

import type { UndoRecord } from '#core/imports/import-changes.ts'
import { type ImportOptions, usualOptions } from '#core/imports/import-job.ts'
import type { ImportedWrite, LaterWrite } from '#core/imports/other-use.ts'
import type { JsonObject } from '#core/json.ts'
import { emptyProfile, noKeys, type Profile } from '#core/persons/profile.ts'
import { applyImportUpdate, mergeProfiles } from '#core/processing/properties/import-update.ts'
import { exceedsMarksLimit } from '#core/processing/properties/marks-limit.ts'
import { creatorKey, exceedsPersonLimit } from '#core/processing/properties/person-update.ts'
import { Doubts, type Homes, LaterUnsets, oneHome } from './later-unsets.ts'
import { keysChanged, pickProfile, revertSubject, type Subject, withAddsOfUnsets, withLaterWrites } from './revert.ts'

/** An import that wrote after the undone import. */
export interface LaterWriter {
  readonly importJobId: number
  /** Implicit jobs have no place in the order of the other jobs. */
  readonly isImplicit: boolean
  readonly options: ImportOptions
  /** When its publishing began, epoch ms; for an implicit job, when it ended. */
  readonly startMs: number
  /** Since when it may have written; for an implicit job, when it began. */
  readonly sinceMs: number
}

/** The writes of one import to a subject, and the time of its first event, epoch ms. */
export interface Shadowed extends LaterWriter {
  readonly profile: Profile
  readonly firstMs: number
  /** Writes to a person also have the distinct id. */
  readonly writes: readonly (ImportedWrite & { readonly distinctId?: string })[]
  /** Whether they were made to persons that have been merged into this one since. */
  readonly isJoined: boolean
}

/**
 * The writes of imports to a subject, in the order of publishing. Implicit jobs come first: they have no place among the
 * others, and no undo records.
 */
export function findShadowed(writes: readonly ImportedWrite[], writers: readonly LaterWriter[]): Shadowed[] {
  const ofJob = Map.groupBy(writes, ({ importJobId }) => importJobId)
  const placed = new Set(writers.map(({ importJobId }) => importJobId))
  const implicitWriters = [...ofJob.keys()]
    .filter(id => !placed.has(id))
    .map(importJobId => ({
      ...{ importJobId, isImplicit: true, options: usualOptions },
      ...{ startMs: Number.POSITIVE_INFINITY, sinceMs: Number.POSITIVE_INFINITY },
    }))
  return [...implicitWriters, ...writers].flatMap(writer => {
    const own = ofJob.get(writer.importJobId)
    return own === undefined
      ? []
      : { ...writer, profile: profileOf(own), firstMs: earliestTimestampMs(own), writes: own, isJoined: false }
  })
}

/** The writes to persons, including those of the creator key. */
export function withCreators<Write extends ImportedWrite>(writes: readonly Write[]): Write[] {
  return writes.flatMap(write =>
    write.op === 'first' ? [write, { ...write, op: 'set_once', key: creatorKey, value: write.uuid }] : write,
  )
}

function earliestTimestampMs(writes: readonly ImportedWrite[]): number {
  return writes.reduce((first, { timestampMs }) => Math.min(first, timestampMs), Number.POSITIVE_INFINITY)
}

function profileOf(writes: readonly ImportedWrite[]): Profile {
  return writes.reduce<Profile>(withWrite, emptyProfile)
}

function withWrite(profile: Profile, { op, key, value, timestampMs, uuid, importJobId }: ImportedWrite): Profile {
  if (op === 'first') return profile
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

/** The profile with these imports' writes to some of its keys. @returns `now` itself if they change nothing. */
export function withShadowed<Now extends Profile>(
  now: Now,
  shadowed: readonly Shadowed[],
  isAsked: (key: string, by: Shadowed) => boolean,
): Now {
  let joined: Profile = now
  for (const by of shadowed) {
    joined = mergeProfiles(
      joined,
      pickProfile(by.profile, key => isAsked(key, by)),
      by.options,
    )
  }
  return joined === now ? now : { ...now, properties: joined.properties, marks: joined.marks }
}

/**
 * The time of creation after undoing the import that had lowered it: the first events of other imports lower it as well.
 * @param formerMs the lowered time.
 */
export function createdAtWithShadowed(createdAtMs: number, formerMs: number, shadowed: readonly Shadowed[]): number {
  if (createdAtMs <= formerMs) return createdAtMs
  return Math.max(
    formerMs,
    shadowed.reduce((first, { firstMs }) => Math.min(first, firstMs), createdAtMs),
  )
}

function withShadowedCreatedAt<Now extends Subject>(now: Now, formerMs: number, shadowed: readonly Shadowed[]): Now {
  const createdAtMs = createdAtWithShadowed(now.createdAtMs, formerMs, shadowed)
  return createdAtMs === now.createdAtMs ? now : { ...now, createdAtMs }
}

/**
 * A profile from which a job was removed, with the writes of live events and later imports that the job had shadowed. Imports
 * that were published before a live `$set_once` come before it.
 * @param timed the profile without the job.
 * @param former the profile with the job's values.
 * @param laterWrites writes of live events.
 * @param added the keys that the subject had only because of the job.
 * @returns also `missing`: keys without the imports' values, because these are too large.
 */
export function withWritesBeneath<Now extends Subject>(
  timed: Now,
  former: Subject,
  laterWrites: readonly LaterWrite[],
  shadowed: readonly Shadowed[],
  { homes = oneHome, added = new Set() }: { readonly homes?: Homes; readonly added?: ReadonlySet<string> } = {},
): { readonly subject: Now; readonly unsure: readonly string[]; readonly missing: readonly string[] } {
  const now = withShadowedCreatedAt(timed, former.createdAtMs, shadowed)
  const [likely, reversed] = [new Doubts(false), new Doubts(true)]
  const {
    subject: all,
    unsure,
    bare,
  } = withWritesAfter(now, former, laterWrites, shadowed, { homes, added, doubts: likely })
  if (all !== now && isTooLarge(all)) {
    const small = bare()
    return { ...small, missing: [...keysChanged(small.subject, all)] }
  }
  if (!likely.hasAny) return { subject: all, unsure, missing: [] }
  const other = withWritesAfter(now, former, laterWrites, shadowed, { homes, added, doubts: reversed })
  return { subject: all, unsure: [...new Set([...unsure, ...keysChanged(all, other.subject)])], missing: [] }
}

/** @returns also `bare`: the same without the writes of imports. */
function withWritesAfter<Now extends Subject>(
  now: Now,
  former: Subject,
  laterWrites: readonly LaterWrite[],
  shadowed: readonly Shadowed[],
  { homes, added, doubts }: { readonly homes: Homes; readonly added: ReadonlySet<string>; readonly doubts: Doubts },
) {
  const without = keysChanged(former, now)
  const isMarked = (key: string) => without.has(key) && Object.hasOwn(former.marks, key)
  const isShown = (key: string) => isMarked(key) && Object.hasOwn(former.properties, key)
  const unsets = new LaterUnsets(laterWrites, homes, isShown, doubts)
  const writes = unsets.writesWithoutThoseOfOthers()
  const lasting = shadowed.map(by => withoutUnset(by, unsets))
  const firstMs = new Map<string, number>()
  for (const { key, storedAtMs } of writes)
    firstMs.set(key, Math.min(storedAtMs, firstMs.get(key) ?? Number.POSITIVE_INFINITY))
  // Values merged in since do not precede the live writes, whenever they were published.
  const wasEarlier = (key: string, { startMs, isJoined }: Shadowed) =>
    isMarked(key) && !isJoined && startMs <= (firstMs.get(key) ?? Number.NEGATIVE_INFINITY)
  const { subject: live, unsure } = withLaterWrites(withShadowed(now, lasting, wasEarlier), former, writes, now)
  const wasBeneath = ({ key, storedAtMs }: LaterWrite) =>
    shadowed.some(by => by.sinceMs <= storedAtMs && Object.hasOwn(by.profile.properties, key))
  const gone = [...added].filter(key => !Object.hasOwn(former.properties, key))
  const subject = withAddsOfUnsets(live, gone, writes, wasBeneath)
  const left = keysChanged(former, subject)
  return {
    subject: withShadowed(subject, lasting, key => without.has(key) || left.has(key)),
    unsure,
    bare: () => withLaterWrites(now, former, writes),
  }
}

/** The writes of an import without those that live events have removed since. */
function withoutUnset(by: Shadowed, unsets: LaterUnsets): Shadowed {
  const { sinceMs, startMs, isJoined } = by
  const writes = by.writes.filter(
    ({ distinctId = '', key }) => !unsets.removed({ distinctId, key, sinceMs, startMs, isJoined }),
  )
  return writes.length === by.writes.length ? by : { ...by, writes, profile: profileOf(writes) }
}

function isTooLarge({ properties, marks }: Profile): boolean {
  return exceedsPersonLimit(JSON.stringify(properties)) || exceedsMarksLimit(marks)
}

/** The version in undo records that were made when a job was undone: no person and no group has it. */
export const versionOfMade = -1

export type ProfileUndoRecord = Extract<UndoRecord, { readonly kind: 'person' | 'group' }>

/** The imports before one of `laterJobIds`, and those up to and including it. Undo records do not contain implicit jobs. */
function splitShadowedAtJob(importJobId: number, shadowed: readonly Shadowed[], laterJobIds: readonly number[]) {
  const fromThere = new Set(laterJobIds.slice(laterJobIds.indexOf(importJobId)))
  const ofJobs = shadowed.filter(by => !by.isImplicit)
  return {
    before: ofJobs.filter(by => !fromThere.has(by.importJobId)),
    after: ofJobs.filter(by => by.importJobId === importJobId || !fromThere.has(by.importJobId)),
  }
}

/**
 * The undo record of a later job as if the undone job had never changed the subject.
 * @param others profiles that may be joined with the undone job's values there.
 */
export function laterUndoRecordWithout<Of extends ProfileUndoRecord>(
  undoRecord: Of,
  undone: ProfileUndoRecord,
  others: readonly Profile[],
  shadowed: readonly Shadowed[],
  laterJobIds: readonly number[],
): Of {
  const { before, after } = undone
  if (after === null) return undoRecord
  const revertSide = (now: Subject | null) => now && revertSubject(now, before, after, { before, others }).subject
  const without = { ...undoRecord, before: revertSide(undoRecord.before), after: revertSide(undoRecord.after) }
  return undoRecordWithShadowed(undoRecord, without, undone, shadowed, laterJobIds)
}

/**
 * The reverted undo record of a later job, with the values of imports that the undone job had shadowed until then.
 * @param undone the undone job's own undo record. Undo records that were made when a job was undone contain none of its values.
 */
export function undoRecordWithShadowed<Of extends ProfileUndoRecord>(
  former: Of,
  reverted: Of,
  undone: ProfileUndoRecord,
  shadowed: readonly Shadowed[],
  laterJobIds: readonly number[],
): Of {
  const until = splitShadowedAtJob(reverted.importJobId, shadowed, laterJobIds)
  const isMade = reverted.after?.version === versionOfMade
  const written = keysChanged(undone.before ?? emptyProfile, undone.after ?? emptyProfile)
  const writtenMs = isMade ? (undone.after?.createdAtMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  const revertSide = (was: Subject | null, is: Subject | null, writers: readonly Shadowed[]) => {
    if (was === null || is === null || writers.length === 0) return is
    const changed = isMade ? written : keysChanged(was, is)
    const timed = withShadowedCreatedAt(is, Math.min(was.createdAtMs, writtenMs), writers)
    return changed.size === 0 ? timed : withShadowed(timed, writers, key => changed.has(key))
  }
  return {
    ...reverted,
    before: revertSide(former.before, reverted.before, until.before),
    after: revertSide(former.after, reverted.after, until.after),
  }
}

/**
 * The profiles before and after an import that has no undo record because the undone job shadowed all its writes. They have
 * only the keys that the undone job wrote, and the time of `now` if that job did not lower it. Null if the import changed none
 * of these.
 */
export function sidesOf(
  importJobId: number,
  { before, after }: { readonly before: Subject | null; readonly after: Subject },
  now: Subject,
  shadowed: readonly Shadowed[],
  laterJobIds: readonly number[],
): { readonly before: Subject; readonly after: Subject } | null {
  const base = before ?? emptyProfile
  const written = keysChanged(base, after)
  const { properties, marks } = pickProfile(base, key => written.has(key))
  const wasLower = before !== null && before.createdAtMs > after.createdAtMs
  const createdAtMs = wasLower ? before.createdAtMs : now.createdAtMs
  const until = splitShadowedAtJob(importJobId, shadowed, laterJobIds)
  const revertSide = (writers: readonly Shadowed[]) => {
    const timed = withShadowedCreatedAt<Subject>({ properties, marks, createdAtMs }, now.createdAtMs, writers)
    return withShadowed(timed, writers, key => written.has(key))
  }
  const [was, became] = [revertSide(until.before), revertSide(until.after)]
  const isSame = keysChanged(was, became).size === 0 && was.createdAtMs === became.createdAtMs
  return isSame ? null : { before: was, after: became }
}
