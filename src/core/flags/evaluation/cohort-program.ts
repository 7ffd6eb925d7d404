// A cohort's tree as a list of leaves, each of which says where to go on with either answer, and the walk that finds out
// whether the subject is a member. The walk keeps its own stack, so neither the depth of a tree nor a long chain of cohorts
// ends up on the engine's; it stops when the time is up, and goes on there. What a cohort came to is remembered for the
// rest of the evaluation, however many flags and cohorts ask.

import type { CohortEntry } from '../definitions/cohort-tree.ts'
import type { SubjectReader } from './evaluation-subject.ts'
import type { DecidedOutcomes, FilterTest } from './filter-test.ts'
import { outOfTime } from './out-of-time.ts'
import { fails, holds, notAsked } from './shared-tests.ts'

export interface CohortProgram {
  /** Index of the leaf to begin with, or an end (negative). */
  readonly first: number
  readonly leaves: readonly CohortLeaf[]
  /** Where its answer is remembered. */
  readonly place: number
}

export interface CohortLeaf {
  /** The leaf of the cohort's tree, by which a trace names it; null for a static cohort. */
  readonly entry: CohortEntry | null
  /** What is tested, or the cohort that is referred to; a negation is in where it goes on. */
  readonly asks: FilterTest | CohortProgram
  readonly whenTrue: number
  readonly whenFalse: number
}

/** Ends, in the place of a leaf. */
const isMember = -1
const isNoMember = -2

/** Where a walk goes on that ran out of time. */
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

/** What a leaf asks before its negation, or its answer when that is known already. */
export type AskOf = (
  leaf: Exclude<CohortEntry, { kind: 'group' }>,
) => FilterTest | { readonly program: CohortProgram; readonly wanted: boolean } | boolean

/** @param place a place of its own among the remembered answers. */
export function cohortProgram(top: CohortEntry, place: number, askOf: AskOf): CohortProgram {
  const leaves: CohortLeaf[] = []
  return { first: put(top, isMember, isNoMember), leaves, place }

  /** From the last entry to the first, since each has to know where the next one begins. At most as deep as trees are. */
  function put(entry: CohortEntry, whenTrue: number, whenFalse: number): number {
    if (entry.kind === 'group') {
      let next = entry.isAny ? whenFalse : whenTrue
      for (const inner of entry.entries.toReversed())
        next = entry.isAny ? put(inner, whenTrue, next) : put(inner, next, whenFalse)
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

/** The program of a cohort that one test decides, as the rows of a static cohort do. */
export function singleTestProgram(asks: FilterTest, place: number): CohortProgram {
  return { first: 0, leaves: [{ entry: null, asks, whenTrue: isMember, whenFalse: isNoMember }], place }
}

/** @returns false as well when `reader.failure` says why there is no answer. */
export function walkCohort(root: CohortProgram, reader: SubjectReader, decided: DecidedOutcomes): boolean {
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
        if (reader.trace !== null) tellTrace(leaf, answer, reader)
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
        if (reader.trace !== null) tellTrace(leaf, answer, reader)
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

/** Whether the entry holds, with its operator and its negation. */
function tellTrace({ entry }: CohortLeaf, answer: boolean, { trace, failure }: SubjectReader): void {
  if (trace === null || entry === null || (entry.kind !== 'test' && entry.kind !== 'cohort')) return
  const isMet = entry.kind === 'test' ? answer : answer === entry.wanted
  trace.leafAnswered(entry, isMet !== entry.isNegated, failure)
}
