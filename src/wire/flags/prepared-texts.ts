// What an answer has of a flag and one of its outcomes, made once and kept as long as the compiled flag, which survives
// changes of other flags.

import type { CompiledFlag } from '#core/flags/evaluation/compile-flag.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { PreparedOutcome } from '#core/flags/evaluation/prepared-outcomes.ts'

/** More flags than this are prepared in steps of this many, because making a text takes up to 10 µs. */
export const flagsPerStep = 128

export class PreparedTexts<T extends NonNullable<unknown>> {
  readonly #make: (flag: CompiledFlag, outcome: PreparedOutcome) => T
  /** By the outcome's slot. */
  readonly #ofFlag = new WeakMap<CompiledFlag, (T | undefined)[]>()
  /** The same by position, so that an answer needs only one lookup, for the project. */
  readonly #ofProject = new WeakMap<CompiledProject, (T | undefined)[][]>()

  constructor(make: (flag: CompiledFlag, outcome: PreparedOutcome) => T) {
    this.#make = make
  }

  *prepareAll({ project, outcomes }: FlagEvaluation): Generator<undefined, void> {
    const prepared = this.#of(project)
    let madeCount = 0
    for (let position = 0; position < outcomes.length; position++) {
      const outcome = outcomes[position]
      if (outcome === undefined) continue
      const ofFlag = prepared[position]!
      if (ofFlag[outcome.slot] !== undefined) continue
      ofFlag[outcome.slot] = this.#make(project.flags[position]!, outcome)
      if (++madeCount % flagsPerStep === 0) yield
    }
  }

  /** Calls `use` with what each answered flag has, by ascending id. */
  forEach({ project, outcomes }: FlagEvaluation, use: (texts: T) => void): void {
    const prepared = this.#of(project)
    for (let position = 0; position < outcomes.length; position++) {
      const outcome = outcomes[position]
      if (outcome === undefined) continue
      const ofFlag = prepared[position]!
      const texts = ofFlag[outcome.slot] ?? this.#make(project.flags[position]!, outcome)
      ofFlag[outcome.slot] = texts
      use(texts)
    }
  }

  #of(project: CompiledProject): (T | undefined)[][] {
    const known = this.#ofProject.get(project)
    if (known !== undefined) return known
    const texts = project.flags.map(flag => {
      if (flag === undefined) return []
      const ofFlag = this.#ofFlag.get(flag) ?? []
      this.#ofFlag.set(flag, ofFlag)
      return ofFlag
    })
    this.#ofProject.set(project, texts)
    return texts
  }
}
