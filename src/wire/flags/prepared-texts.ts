// The parts of an answer for one outcome of a flag. Each is made once and cached as long as the compiled flag, which
// survives changes of other flags.

import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'

/** More flags than this are prepared in steps of this many, because making a text takes up to 10 µs. */
export const flagsPerStep = 128

/** The cached texts of one flag's outcomes, by slot. */
export type CachedTexts<T> = (T | undefined)[]

/**
 * Limits the size of a flag's cached texts: a flag with a hundred rules may have its large default value in the text of
 * each rule.
 */
const charsOfFlagMax = 1024 * 1024
/**
 * The total length of a flag's cached texts, stored apart from them: an answer reads hundreds of texts, and each further
 * indirection costs as much as joining a text.
 */
const charsOf = new WeakMap<CachedTexts<unknown>, number>()

/**
 * Caches what was made for an outcome. When the flag's cache becomes too large, everything cached earlier is dropped.
 */
export function cachePreparedText<T>(kept: CachedTexts<T>, { slot }: PreparedOutcome, made: T, chars: number): T {
  const total = (charsOf.get(kept) ?? 0) + chars
  if (total > charsOfFlagMax) kept.length = 0
  charsOf.set(kept, total > charsOfFlagMax ? chars : total)
  kept[slot] = made
  return made
}

export class PreparedTexts<T extends NonNullable<unknown>> {
  readonly #make: (flag: CompiledFlag, outcome: PreparedOutcome) => T
  readonly #charsOf: (made: T) => number
  readonly #ofFlag = new WeakMap<CompiledFlag, CachedTexts<T>>()
  /** The cached texts of all flags by position, so that an answer needs only one lookup, for the project. */
  readonly #ofProject = new WeakMap<CompiledProject, CachedTexts<T>[]>()

  constructor(make: (flag: CompiledFlag, outcome: PreparedOutcome) => T, charsOf: (made: T) => number) {
    this.#make = make
    this.#charsOf = charsOf
  }

  *prepareAll({ project, outcomes }: FlagEvaluation): Generator<undefined, void> {
    const prepared = this.#of(project)
    let madeCount = 0
    for (let position = 0; position < outcomes.length; position++) {
      const outcome = outcomes[position]
      if (outcome === undefined) continue
      const kept = prepared[position]!
      if (kept[outcome.slot] !== undefined) continue
      this.#made(project.flags[position]!, outcome, kept)
      if (++madeCount % flagsPerStep === 0) yield
    }
  }

  /** The part of each answered flag, by ascending id. */
  of({ project, outcomes }: FlagEvaluation): T[] {
    const prepared = this.#of(project)
    const all: T[] = []
    for (let position = 0; position < outcomes.length; position++) {
      const outcome = outcomes[position]
      if (outcome === undefined) continue
      const kept = prepared[position]!
      all.push(kept[outcome.slot] ?? this.#made(project.flags[position]!, outcome, kept))
    }
    return all
  }

  #made(flag: CompiledFlag, outcome: PreparedOutcome, kept: CachedTexts<T>): T {
    const made = this.#make(flag, outcome)
    return cachePreparedText(kept, outcome, made, this.#charsOf(made))
  }

  #of(project: CompiledProject): CachedTexts<T>[] {
    const known = this.#ofProject.get(project)
    if (known !== undefined) return known
    const texts = project.flags.map(flag => {
      const kept = (flag && this.#ofFlag.get(flag)) ?? []
      if (flag !== undefined) this.#ofFlag.set(flag, kept)
      return kept
    })
    this.#ofProject.set(project, texts)
    return texts
  }
}
