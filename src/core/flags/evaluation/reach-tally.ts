// Compares the reach of a draft of a flag with that of another version: which subjects gain the flag, lose it or move
// between variants. Its memory is bounded, however many persons are counted and however many variants there are.

import { type FlagOutcome, flagValueOf } from './flag-outcome.ts'

/**
 * Null when the flag cannot be computed. A number or an object, which flags of version 2 may have, becomes its JSON text.
 * An absent value becomes false, the same way as for clients that do not know such flags.
 */
export type ReachedValue = boolean | string | null

export interface ReachCounts {
  readonly evaluated: number
  /** Subjects that change from off to on or a variant. */
  readonly gained: number
  readonly lost: number
  /** Subjects that change from one value that is not off to another. */
  readonly moved: number
  readonly unchanged: number
  /** Each value, with the number of subjects that have it before and after the change, in the order of first occurrence. */
  readonly values: readonly { readonly value: ReachedValue; readonly before: number; readonly after: number }[]
  /** Changes of value; the first `changeKindsMax` kinds that occurred. */
  readonly changes: readonly { readonly from: ReachedValue; readonly to: ReachedValue; readonly count: number }[]
  /** How many changes of value were of further kinds. */
  readonly otherChanges: number
  /** How many subjects each condition set of the draft includes; for version 2, how many each rule decides. */
  readonly byCondition: readonly number[]
  /** Persons whose value under the draft differs between their distinct ids. */
  readonly split: number
}

export const changeKindsMax = 1_000

export class ReachTally {
  #evaluated = 0
  #gained = 0
  #lost = 0
  #moved = 0
  #otherChanges = 0
  #split = 0
  readonly #values = new Map<ReachedValue, { before: number; after: number }>()
  readonly #changes = new Map<ReachedValue, Map<ReachedValue, number>>()
  #changeKinds = 0
  readonly #byCondition: number[]

  constructor(conditionCount: number) {
    this.#byCondition = new Array(conditionCount).fill(0)
  }

  /**
   * @param before, after null when the flag has no value. @param isSplit whether the `after` value differs between the
   * subject's distinct ids.
   */
  add(before: FlagOutcome | null, after: FlagOutcome | null, isSplit: boolean): void {
    const from = readReachedValue(before)
    const to = readReachedValue(after)
    this.#evaluated++
    this.#valueOf(from).before++
    this.#valueOf(to).after++
    if (isSplit) this.#split++
    const decidedIndex = after === null ? null : findDecidingIndex(after)
    if (decidedIndex !== null) this.#byCondition[decidedIndex]!++
    if (from === to) return
    if (from === false && to !== null) this.#gained++
    else if (to === false && from !== null) this.#lost++
    else if (from !== null && to !== null) this.#moved++
    this.#addChange(from, to)
  }

  /** Adds persons or groups for whom the flag is off before and after. */
  addOff(count: number): void {
    if (count === 0) return
    this.#evaluated += count
    const counts = this.#valueOf(false)
    counts.before += count
    counts.after += count
  }

  counts(): ReachCounts {
    const changes = [...this.#changes].flatMap(([from, counts]) =>
      [...counts].map(([to, count]) => ({ from, to, count })),
    )
    const changed = changes.reduce((sum, { count }) => sum + count, this.#otherChanges)
    return {
      evaluated: this.#evaluated,
      gained: this.#gained,
      lost: this.#lost,
      moved: this.#moved,
      unchanged: this.#evaluated - changed,
      values: [...this.#values].map(([value, counts]) => ({ value, ...counts })),
      changes: changes.sort((a, b) => b.count - a.count),
      otherChanges: this.#otherChanges,
      byCondition: [...this.#byCondition],
      split: this.#split,
    }
  }

  #valueOf(value: ReachedValue): { before: number; after: number } {
    const known = this.#values.get(value)
    if (known !== undefined) return known
    const counts = { before: 0, after: 0 }
    this.#values.set(value, counts)
    return counts
  }

  #addChange(from: ReachedValue, to: ReachedValue): void {
    const counts = this.#changes.get(from) ?? new Map<ReachedValue, number>()
    const known = counts.get(to)
    if (known === undefined && this.#changeKinds >= changeKindsMax) {
      this.#otherChanges++
      return
    }
    if (known === undefined) this.#changeKinds++
    this.#changes.set(from, counts)
    counts.set(to, (known ?? 0) + 1)
  }
}

export function readReachedValue(outcome: FlagOutcome | null): ReachedValue {
  if (outcome === null) return null
  // The payload of a typed value is its JSON text.
  const isTyped = outcome.kind === 'on' && outcome.typed !== undefined
  return (isTyped ? outcome.payload : undefined) ?? flagValueOf(outcome) ?? null
}

function findDecidingIndex(outcome: FlagOutcome): number | null {
  if (outcome.kind === 'unknown') return null
  const isMatch = outcome.kind !== 'off' && outcome.reason === 'condition_match'
  return isMatch || outcome.typed !== undefined ? outcome.conditionIndex : null
}
