// Undoing a job where persons have been merged since: its values are removed from all of the merged persons together, and
// the values of persons that later jobs merged in show again. Source: docs/wire/import.md §2.11.

import type { Person } from '#core/persons/person.ts'
import { emptyProfile, type Profile, ProfileDraft } from '#core/persons/profile.ts'
import { mergeProfiles } from '#core/processing/properties/import-update.ts'
import {
  type Joined,
  keysAdded,
  keysChanged,
  pickProfile,
  revertedProfile,
  revertSubject,
  type Sides,
  type Subject,
} from './revert.ts'
import type { ProfileUndoRecord, Shadowed } from './shadowed.ts'

/** A person that a later job merged into another one. */
export interface Brought {
  readonly importJobId: number
  readonly person: Subject
}

/** Removes what a job wrote from persons that may since have been merged with others that it wrote to. */
export class JoinedPersons {
  readonly #sidesIn: (uuid: string) => readonly Sides[]
  readonly #ofPerson = new Map<string, { readonly sides: readonly Sides[] } & Joined>()

  /**
   * @param sidesIn returns the profiles before and after the job of all persons that have become this one, its own
   * first.
   */
  constructor(sidesIn: (uuid: string) => readonly Sides[]) {
    this.#sidesIn = sidesIn
  }

  /**
   * Values that may be joined with the job's values in a current person.
   * @param shadowed writes of other imports to this person.
   */
  joinedIn(uuid: string, shadowed: readonly Shadowed[]): Joined {
    const { before, others } = this.#of(uuid)
    return { before, others: shadowed.length === 0 ? others : [...others, ...shadowed.map(({ profile }) => profile)] }
  }

  /**
   * The person without the job's changes to it and, on the first call, to the persons merged with it: the visible value may
   * come from any of them.
   */
  reverted(
    person: Person,
    { before, after }: { readonly before: Subject | null; readonly after: Subject },
    joined: Joined,
  ): { readonly subject: Person; readonly left: readonly string[] } {
    const { sides } = this.#of(person.uuid)
    this.#ofPerson.set(person.uuid, { ...this.#of(person.uuid), sides: [] })
    const { subject, left } = revertSubject(person, before, after, joined)
    return { subject: sides.reduce((now, each) => revertedProfile(now, each, joined).subject, subject), left }
  }

  #of(uuid: string) {
    const known = this.#ofPerson.get(uuid)
    if (known !== undefined) return known
    const sides = this.#sidesIn(uuid)
    const joined = { sides, before: joinedBefore(sides), others: sides.map(({ after }) => after) }
    this.#ofPerson.set(uuid, joined)
    return joined
  }
}

/**
 * The joined profile, before the job, of persons that have been merged since. It has only the keys that the job changed
 * or an import wrote; other live values may have been removed since.
 */
function joinedBefore(all: readonly Sides[]): Profile | null {
  return all.reduce<Profile | null>((into, { before, after }) => {
    if (before === null) return into
    const changed = keysChanged(before, after)
    const isImported = (key: string) => Object.hasOwn(before.marks, key) && before.marks[key]!.kind !== 'live_once'
    return mergeProfiles(
      into ?? emptyProfile,
      pickProfile(before, key => changed.has(key) || isImported(key)),
    )
  }, null)
}

/**
 * The subject with the values that the merged persons have for the keys that the job had changed, and with their
 * earlier time of creation if the job had lowered it.
 * @param former the subject with the job's values.
 */
export function withBrought<Now extends Subject>(now: Now, former: Subject, brought: readonly Brought[]): Now {
  const keys = keysChanged(former, now)
  const joined = brought.reduce<Profile>(
    (into, { person }) =>
      mergeProfiles(
        into,
        pickProfile(person, key => keys.has(key)),
      ),
    now,
  )
  const createdAtMs = brought.reduce(
    (first, { person }) => Math.min(first, Math.max(person.createdAtMs, former.createdAtMs)),
    now.createdAtMs,
  )
  if (joined === now && createdAtMs === now.createdAtMs) return now
  return { ...now, properties: joined.properties, marks: joined.marks, createdAtMs }
}

/**
 * A person with the keys that the job had added to another person, before that person was merged into it, and that an `$unset`
 * of an import hides now. Before the merge, these keys blocked the `$set_once` of live events.
 */
export function withHidden(person: Person, { before, after }: Sides): Person {
  const isHidden = (key: string) => person.marks[key]?.kind === 'import_unset' && !Object.hasOwn(person.properties, key)
  const hidden = keysAdded(before, after).filter(isHidden)
  if (hidden.length === 0) return person
  const draft = new ProfileDraft({ properties: person.properties, marks: person.marks })
  for (const key of hidden) draft.setProperty(key, after.properties[key]!)
  return { ...person, properties: draft.properties }
}

/** The reverted undo record of a later job, with the persons that this job and earlier ones had merged in. */
export function undoRecordWithBrought<Of extends ProfileUndoRecord>(
  former: Of,
  reverted: Of,
  brought: readonly Brought[],
  laterJobIds: readonly number[],
): Of {
  const place = laterJobIds.indexOf(reverted.importJobId)
  const upTo = (end: number) => brought.filter(({ importJobId }) => laterJobIds.indexOf(importJobId) < end)
  const joinSide = (was: Subject | null, is: Subject | null, end: number) =>
    was && is && withBrought(is, was, upTo(end))
  return {
    ...reverted,
    before: joinSide(former.before, reverted.before, place),
    after: joinSide(former.after, reverted.after, place + 1),
  }
}
