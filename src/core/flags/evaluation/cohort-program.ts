// A cohort's tree as a list of leaves, each of which says where to continue after either answer, and the walk that decides
// whether the subject is a member. The walk has its own stack, so that deep trees and long chains of cohorts cannot
// overflow V8's stack. The walk stops when the time is up and resumes there. A cohort's answer is remembered for the rest
// of the evaluation, however many flags and cohorts ask for it.

import type { CohortEntry } from '../definitions/cohort-tree.ts'
import type { SubjectReader } from './evaluation-subject.ts'
import type { DecidedOutcomes, FilterTest } from './filter-test.ts'
import { outOfTime } from './out-of-time.ts'
import { fails, holds, notAsked } from './shared-tests.ts'

export interface CohortProgram {
  /** Index of the first leaf, or an end (negative). */
  readonly first: number
  readonly leaves: readonly CohortLeaf[]
  /** Index of the cohort's remembered answer. */
  readonly place: number
}

export interface CohortLeaf {
  /** The entry of the cohort's tree that this leaf was made from, for traces; null for a static cohort. */
  readonly entry: CohortEntry | null
  /** The test, or the cohort referred to. A negation swaps `whenTrue` and `whenFalse`. */
  readonly asks: FilterTest | CohortProgram
  readonly whenTrue: number
  readonly whenFalse: number
}

/** The ends of a walk, used in place of a leaf's index. */
const isMember = -1
const isNoMember = -2

/** Where a walk that ran out of time resumes. */
class PausedWalk {
  readonly root: CohortProgram
  readonly program: CohortProgram
  readonly next: number
  readonly callers: Caller[] | null

  constructor(root: CohortProgram, program: CohortProgram, next: number, callers: Caller[] | null) {
    this.root = root
    this.program = program
    this.next = next
    this.callers = callers
  }
}

interface Caller {
  readonly program: CohortProgram
  readonly next: number
}

/** Returns what a leaf asks, without its negation, or its answer if that is already known. */
export type GetLeafTest = (
  leaf: Exclude<CohortEntry, { kind: 'group' }>,
) => FilterTest | { readonly program: CohortProgram; readonly wanted: boolean } | boolean

/** @param place an index among the remembered answers that only this cohort uses. */
export function buildCohortProgram(top: CohortEntry, place: number, askOf: GetLeafTest): CohortProgram {
  const leaves: CohortLeaf[] = []
  return { first: emitEntry(top, isMember, isNoMember), leaves, place }

  /**
   * Works from the last entry to the first, since each must know where the next begins. Recurses as deep as the tree.
   */
  function emitEntry(entry: CohortEntry, whenTrue: number, whenFalse: number): number {
    if (entry.kind === 'group') {
      let next = entry.isAny ? whenFalse : whenTrue
      for (const inner of entry.entries.toReversed())
        next = entry.isAny ? emitEntry(inner, whenTrue, next) : emitEntry(inner, next, whenFalse)
      return next
    }
    const asked = askOf(entry)
    const isNegated = entry.kind !== 'behavior' && entry.isNegated
    if (typeof asked === 'boolean') return asked !== isNegated ? whenTrue : whenFalse
    const asks = typeof asked === 'function' ? asked : asked.program
    const isFlipped = typeof asked === 'function' ? isNegated : isNegated === asked.wanted
    leaves.push({
      entry,
      asks,
      whenTrue: isFlipped ? whenFalse : whenTrue,
      whenFalse: isFlipped ? whenTrue : whenFalse,
    })
    return leaves.length - 1
  }
}

/** The program of a cohort that a single test decides, such as a static cohort. */
export function buildSingleTestProgram(asks: FilterTest, place: number): CohortProgram {
  return { first: 0, leaves: [{ entry: null, asks, whenTrue: isMember, whenFalse: isNoMember }], place }
}

/** @returns whether the subject is a member; means nothing when `reader.failure` is set. */
export function evaluateCohort(root: CohortProgram, reader: SubjectReader, decided: DecidedOutcomes): boolean {
  const { remembered } = reader
  if (remembered[root.place] !== notAsked) return remembered[root.place] === holds
  let program = root
  let next = root.first
  let callers: Caller[] | null = null
  const paused = reader.pausedCohort
  if (paused instanceof PausedWalk && paused.root === root) ({ program, next, callers } = paused)
  reader.pausedCohort = null

  for (let asked = 0; ; ) {
    while (next >= 0) {
      const leaf: CohortLeaf = program.leaves[next]!
      let answer: boolean
      if (typeof leaf.asks === 'function') {
        answer = leaf.asks(reader, decided)
        if (reader.trace !== null) traceLeaf(leaf, answer, reader)
        if (reader.failure !== null) {
          if (reader.failure === outOfTime) reader.pausedCohort = new PausedWalk(root, program, next, callers)
          return false
        }
      } else {
        const known = remembered[leaf.asks.place]
        if (known === notAsked) {
          callers ??= []
          callers.push({ program, next })
          program = leaf.asks
          next = program.first
          continue
        }
        answer = known === holds
        if (reader.trace !== null) traceLeaf(leaf, answer, reader)
      }
      next = answer ? leaf.whenTrue : leaf.whenFalse
      const isLook = (asked++ & reader.lookMask) === reader.lookMask
      if (isLook && next >= 0 && reader.isTimeUp()) {
        reader.pausedCohort = new PausedWalk(root, program, next, callers)
        reader.failure = outOfTime
        return false
      }
    }
    remembered[program.place] = next === isMember ? holds : fails
    const caller = callers?.pop()
    if (caller === undefined) return next === isMember
    ;({ program, next } = caller)
  }
}

/** Records in the trace whether the entry holds, with its operator and negation applied. */
function traceLeaf({ entry }: CohortLeaf, answer: boolean, { trace, failure }: SubjectReader): void {
  if (trace === null || entry === null || (entry.kind !== 'test' && entry.kind !== 'cohort')) return
  const isMet = entry.kind === 'test' ? answer : answer === entry.wanted
  trace.leafAnswered(entry, isMet !== entry.isNegated, failure)
}
