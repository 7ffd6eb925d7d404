// Which values a live `$unset` took away since an import that is undone. Ids that are of one person today may have been of
// several when it came, and it took a value from one of these only. Where nobody can say from which, both are tried.

import type { LaterWrite } from '#core/imports/other-use.ts'

/** Whose distinct ids have been since the undone import. */
export interface Homes {
  /** The person that the import changed. */
  readonly own: string
  /** The person that had an id; null for an id that a later merge may have brought. */
  readonly of: (distinctId: string) => string | null
}

/** For groups, and for a person whose ids never belonged to anybody else. */
export const oneHome: Homes = { own: '', of: () => '' }

/** Settles what nobody can say: as is likely, or all of it the other way. */
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

/** What an import wrote with a distinct id, and when it may have written it at first and at last. */
export interface TimedWrite {
  readonly distinctId: string
  readonly key: string
  readonly sinceMs: number
  readonly startMs: number
  /** It was another person's until a later merge. */
  readonly isJoined: boolean
}

export class LaterUnsets {
  readonly #laterWrites: readonly LaterWrite[]
  readonly #unsets: ReadonlyMap<string, readonly LaterWrite[]>
  readonly #homes: Homes
  readonly #isShown: (key: string) => boolean
  readonly #doubts: Doubts

  /**
   * @param isShown whether the person still had the import's value when that was undone: then no `$unset` came to that person,
   *   which would have removed it.
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

  /** The live writes without each `$unset` that came to another person, and what it removed there. */
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
      return !this.#doubts.settle(someOf(verdicts), false)
    })
  }

  /** Whether one of them removed what an import had written beneath the undone one. */
  removed({ distinctId, key, sinceMs, startMs, isJoined }: TimedWrite): boolean {
    const unsets = (this.#unsets.get(key) ?? []).filter(({ storedAtMs }) => storedAtMs >= sinceMs)
    const areOfOne = unsets.map(unset => this.#cameTo(unset, distinctId))
    const verdicts = unsets.map(({ storedAtMs }, place) => {
      const isOfOne = areOfOne[place]!
      return isOfOne === true && storedAtMs < startMs ? null : isOfOne
    })
    return this.#doubts.settle(someOf(verdicts), areOfOne.includes(true) || !(isJoined || this.#isShown(key)))
  }

  #isOwn(distinctId: string): boolean | null {
    const home = this.#homes.of(distinctId)
    return home === null ? null : home === this.#homes.own
  }

  /** Whether an `$unset` came to the person that the distinct id had. */
  #cameTo(unset: LaterWrite, distinctId: string): boolean | null {
    if (unset.distinctId === distinctId) return true
    const [home, other] = [this.#homes.of(unset.distinctId), this.#homes.of(distinctId)]
    if (home === null && this.#isShown(unset.key) && other === this.#homes.own) return false
    return home === null || other === null ? null : home === other
  }
}

function someOf(verdicts: readonly (boolean | null)[]): boolean | null {
  if (verdicts.includes(true)) return true
  return verdicts.includes(null) ? null : false
}
