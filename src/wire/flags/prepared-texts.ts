// What an answer has of a flag and one of its outcomes, made once and kept as long as the compiled flag, which survives
// changes of other flags.

import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'

/** More flags than this are prepared in steps of this many, because making a text takes up to 10 µs. */
export const flagsPerStep = 128

/** What is kept of the outcomes of one flag. */
export interface KeptTexts<T> {
  readonly bySlot: (T | undefined)[]
  chars: number
}

/** A flag of a hundred rules may have its large default in the text of each of them. */
const charsOfFlagMax = 1024 * 1024

/** Keeps what was made for an outcome; all that was kept before goes when it becomes too much. */
export function keep<T>(kept: KeptTexts<T>, { slot }: PreparedOutcome, made: T, chars: number): T {
  kept.chars += chars
  if (kept.chars > charsOfFlagMax) {
    kept.bySlot.length = 0
    kept.chars = chars
  }
  kept.bySlot[slot] = made
  return made
}

export class PreparedTexts<T extends NonNullable<unknown>> {
  readonly #make: (flag: CompiledFlag, outcome: PreparedOutcome) => T
  readonly #charsOf: (made: T) => number
  readonly #ofFlag = new WeakMap<CompiledFlag, KeptTexts<T>>()
  /** The same by position, so that an answer needs only one lookup, for the project. */
  readonly #ofProject = new WeakMap<CompiledProject, KeptTexts<T>[]>()

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
      if (kept.bySlot[outcome.slot] !== undefined) continue
      this.#made(project.flags[position]!, outcome, kept)
      if (++madeCount % flagsPerStep === 0) yield
    }
  }

  /** Calls `use` with what each answered flag has, by ascending id. */
  forEach({ project, outcomes }: FlagEvaluation, use: (texts: T) => void): void {
    const prepared = this.#of(project)
    for (let position = 0; position < outcomes.length; position++) {
      const outcome = outcomes[position]
      if (outcome === undefined) continue
      const kept = prepared[position]!
      use(kept.bySlot[outcome.slot] ?? this.#made(project.flags[position]!, outcome, kept))
    }
  }

  #made(flag: CompiledFlag, outcome: PreparedOutcome, kept: KeptTexts<T>): T {
    const made = this.#make(flag, outcome)
    return keep(kept, outcome, made, this.#charsOf(made))
  }

  #of(project: CompiledProject): KeptTexts<T>[] {
    const known = this.#ofProject.get(project)
    if (known !== undefined) return known
    const texts = project.flags.map(flag => {
      const kept = (flag && this.#ofFlag.get(flag)) ?? { bySlot: [], chars: 0 }
      if (flag !== undefined) this.#ofFlag.set(flag, kept)
      return kept
    })
    this.#ofProject.set(project, texts)
    return texts
  }
}
