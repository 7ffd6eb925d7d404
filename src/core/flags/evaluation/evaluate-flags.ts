// Evaluates all flags of a project for one subject, dependencies first. Works in slices, so that a request with thousands
// of flags does not block the event loop; the caller decides when a slice ends. Source: docs/wire/evaluation.md 5.1, 5.15.

import type { CompiledProject } from './compile-project.ts'
import { evaluateFlag } from './evaluate-flag.ts'
import { type EvaluationSubject, SubjectReader } from './evaluation-subject.ts'
import type { EvaluationTrace } from './evaluation-trace.ts'
import type { PreparedOutcome } from './prepared-outcomes.ts'

/** How much may be evaluated between two checks of the time: about half a millisecond of cheap flags. */
const weightPerTimeCheck = 256

export class FlagEvaluation {
  readonly project: CompiledProject
  /**
   * By position; undefined for a flag that takes no part or is caught in a cycle. Complete once `advance` returns true.
   */
  readonly outcomes: (PreparedOutcome | undefined)[]
  readonly trace: EvaluationTrace | null
  /** Whether some flag could not be computed, or the project has a cycle. */
  hasErrors: boolean
  /** The first internal error that made a flag unknown, for the log. */
  fault: unknown = undefined
  readonly #selected: readonly boolean[] | null
  readonly #reader: SubjectReader
  #next = 0

  /** @param selected the result of `selectFlags`. @param trace records every step, for an explanation. */
  constructor(
    project: CompiledProject,
    selected: readonly boolean[] | null,
    subject: EvaluationSubject,
    trace: EvaluationTrace | null = null,
  ) {
    this.project = project
    this.#selected = selected
    this.trace = trace
    this.#reader = new SubjectReader(subject, project, trace)
    this.outcomes = new Array(project.flags.length).fill(undefined)
    this.hasErrors = project.hasDependencyCycle
  }

  /** Evaluates until everything is done or the time is up. @returns false when the time was up: call it again. */
  advance(isTimeUp: () => boolean): boolean {
    const { order, flags } = this.project
    let weight = 0
    this.#reader.isTimeUp = isTimeUp
    while (this.#next < order.length) {
      if (weight >= weightPerTimeCheck) {
        if (isTimeUp()) return false
        weight = 0
      }
      const position = order[this.#next]!
      if (this.#selected !== null && !this.#selected[position]) {
        this.#next++
        continue
      }
      if (!this.#decide(position)) return false
      this.#next++
      weight += this.#reader.lookMask === 0 ? weightPerTimeCheck : flags[position]!.weight
    }
    return true
  }

  /** Decides one flag. @returns false when the time was up before the flag was decided. */
  #decide(position: number): boolean {
    const { flags, missingDependency } = this.project
    const flag = flags[position]!
    let outcome: PreparedOutcome | null
    if (missingDependency.size > 0 && missingDependency.has(position)) outcome = flag.outcomes.missingDependency()
    else {
      try {
        outcome = evaluateFlag(flag, this.#reader, this.outcomes)
      } catch (cause) {
        // A flag's failure never stops the evaluation of other flags (5.1).
        this.fault ??= cause
        outcome = flag.outcomes.unknown('batch_evaluation_panicked')
      }
    }
    if (outcome === null) return false
    this.outcomes[position] = outcome
    if (outcome.kind === 'unknown') this.hasErrors = true
    return true
  }
}
