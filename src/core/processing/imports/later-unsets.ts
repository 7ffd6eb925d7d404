// Determines which values a live `$unset` has removed since an undone import. When the `$unset` arrived, the ids that
// now belong to one person may have belonged to several persons, and it removed the value of only one of them. If it is
// unknown which one, both possibilities are tried.

import type { LaterWrite } from '#core/imports/other-use.ts'

/** The persons to which distinct ids have belonged since the undone import. */
export interface Homes {
  /** The person that the import changed. */
  readonly own: string
  /** The person that had an id; null for an id that may come from a later merge. */
  readonly of: (distinctId: string) => string | null
}

/** For groups, and for a person whose ids never belonged to another person. */
export const oneHome: Homes = { own: '', of: () => '' }

/** Answers questions that the events leave open: with the likely answers, or with all of these reversed. */
export class Doubts {
  hasAny = false
  readonly #areReversed: boolean

  constructor(areReversed: boolean) {
    this.#areReversed = areReversed
  }

  settle(known: boolean | null, isLikely: boolean): boolean {
    if (known !== null) return known
    this.hasAny = true
    return isLikely !== this.#areReversed
  }
}

/** A write of an import with a distinct id, and the earliest and latest time at which it may have been made. */
export interface TimedWrite {
  readonly distinctId: string
  readonly key: string
  readonly sinceMs: number
  readonly startMs: number
  /** The distinct id belonged to another person until a later merge. */
  readonly isJoined: boolean
}

export class LaterUnsets {
  readonly #laterWrites: readonly LaterWrite[]
  readonly #unsets: ReadonlyMap<string, readonly LaterWrite[]>
  readonly #homes: Homes
  readonly #isShown: (key: string) => boolean
  readonly #doubts: Doubts

  /**
   * @param isShown whether the person still had the import's value when the import was undone: then no `$unset` came to that
   *   person, which would have removed the value.
   */
  constructor(laterWrites: readonly LaterWrite[], homes: Homes, isShown: (key: string) => boolean, doubts: Doubts) {
    this.#laterWrites = laterWrites
    this.#unsets = Map.groupBy(
      laterWrites.filter(({ op }) => op === 'unset'),
      ({ key }) => key,
    )
    this.#homes = homes
    this.#isShown = isShown
    this.#doubts = doubts
  }

  /**
   * The live writes without each `$unset` that was applied to another person, and without the values that it removed
   * there.
   */
  writesWithoutThoseOfOthers(): readonly LaterWrite[] {
    const laterWrites = this.#laterWrites
    if (this.#unsets.size === 0) return laterWrites
    const placeOf = new Map(laterWrites.map((write, place) => [write, place]))
    return laterWrites.filter((write, place) => {
      const { op, key, distinctId, uuid } = write
      if (op === 'unset') return !this.#isShown(key) && this.#doubts.settle(this.#isOwn(distinctId), true)
      if (op === 'set' || !this.#isShown(key)) return true
      const later = (this.#unsets.get(key) ?? []).filter(unset => placeOf.get(unset)! > place && unset.uuid !== uuid)
      const verdicts = later.map(unset => this.#cameTo(unset, distinctId))
      return !this.#doubts.settle(anyTrueOrUnknown(verdicts), false)
    })
  }

  /** Whether an `$unset` removed the write of an import that the undone import shadowed. */
  removed({ distinctId, key, sinceMs, startMs, isJoined }: TimedWrite): boolean {
    const unsets = (this.#unsets.get(key) ?? []).filter(({ storedAtMs }) => storedAtMs >= sinceMs)
    const areOfOne = unsets.map(unset => this.#cameTo(unset, distinctId))
    const verdicts = unsets.map(({ storedAtMs }, place) => {
      const isOfOne = areOfOne[place]!
      return isOfOne === true && storedAtMs < startMs ? null : isOfOne
    })
    return this.#doubts.settle(anyTrueOrUnknown(verdicts), areOfOne.includes(true) || !(isJoined || this.#isShown(key)))
  }

  #isOwn(distinctId: string): boolean | null {
    const home = this.#homes.of(distinctId)
    return home === null ? null : home === this.#homes.own
  }

  /** Whether an `$unset` was applied to the person to which the distinct id belonged. */
  #cameTo(unset: LaterWrite, distinctId: string): boolean | null {
    if (unset.distinctId === distinctId) return true
    const [home, other] = [this.#homes.of(unset.distinctId), this.#homes.of(distinctId)]
    if (home === null && this.#isShown(unset.key) && other === this.#homes.own) return false
    return home === null || other === null ? null : home === other
  }
}

function anyTrueOrUnknown(verdicts: readonly (boolean | null)[]): boolean | null {
  if (verdicts.includes(true)) return true
  return verdicts.includes(null) ? null : false
}
