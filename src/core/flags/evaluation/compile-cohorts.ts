// Compiles a project's cohorts for evaluation: only those that flags reach, each once, when a flag first reaches it.
// Source: docs/wire/evaluation.md 5.11.

import { isSameJson } from '../../json-equal.ts'
import { err, ok, type Result } from '../../result.ts'
import type { Cohort } from '../definitions/cohort.ts'
import type { CohortTree } from '../definitions/cohort-tree.ts'
import { CohortGraph, type CohortNode } from './cohort-graph.ts'
import { buildCohortProgram, buildSingleTestProgram, type CohortProgram, evaluateCohort } from './cohort-program.ts'
import { compileFilter, estimateFilterWeight, type FilterCompiler } from './compile-filter.ts'
import type { CompiledCohort, CompiledCohorts, ReachedCohort } from './compiled-cohort.ts'
import type { FilterTest } from './filter-test.ts'
import { type FlagNeeds, NeedsCollector } from './flag-needs.ts'
import type { UnknownReason } from './flag-outcome.ts'

type SharedCompiler = Pick<FilterCompiler, 'settings' | 'personKeys' | 'sharedTests' | 'positionOfId'>

interface KnownCohort extends CompiledCohort {
  readonly program: CohortProgram
}

/** A compiled cohort, with what it was compiled against. */
interface CohortEntry {
  readonly cohort: Cohort
  readonly compiled: Result<KnownCohort, UnknownReason>
  readonly problems: readonly string[]
  /** The position of each flag that its tree tests, undefined for a flag that did not exist. */
  readonly positions: readonly (number | undefined)[]
}

/** A cohort that reads more keys than this always reads the stored person: hardly any request has all of them. */
const personKeysMax = 64
/** Limits the weight: above this, the time is checked as often as possible anyway. */
const weightMax = 4_096

export class ProjectCohorts implements CompiledCohorts {
  readonly #graph: CohortGraph
  readonly #shared: SharedCompiler
  readonly #entries = new Map<number, CohortEntry>()
  #previous: ProjectCohorts | null

  /**
   * @param cohorts the project's cohorts, without deleted ones.
   * @param previous the cohorts of an earlier compilation with the same settings, keys and tests; unchanged cohorts are
   * reused.
   */
  constructor(cohorts: readonly Cohort[], shared: SharedCompiler, previous: ProjectCohorts | null = null) {
    this.#graph = new CohortGraph(cohorts)
    this.#shared = shared
    this.#previous = previous
  }

  /** Ends the reuse of earlier cohorts; otherwise each compilation would keep the previous one in memory. */
  forgetPrevious(): void {
    this.#previous = null
  }

  reach(id: number, problem: (message: string) => void): ReachedCohort {
    for (const node of this.#graph.reach(id)) {
      const entry = this.#takenOver(node) ?? this.#newEntry(node)
      this.#entries.set(node.cohort.id, entry)
      for (const message of entry.problems) problem(`the cohort ${node.cohort.id}: ${message}`)
    }
    return {
      cohort: this.#compiled(id) ?? err('dependency_not_found_cohort'),
      dependencyIds: this.#graph.flagIdsFrom(id),
    }
  }

  #compiled(id: number): Result<KnownCohort, UnknownReason> | undefined {
    return this.#entries.get(id)?.compiled
  }

  /**
   * The previous compilation's entry; null if the cohort, a cohort that it refers to, or a tested flag's position has
   * changed.
   */
  #takenOver({ cohort, tree, fault }: CohortNode): CohortEntry | null {
    const entry = this.#previous === null ? undefined : this.#previous.#entries.get(cohort.id)
    if (entry === undefined || !entry.compiled.ok || fault !== null) return null
    if (!isSameCohort(entry.cohort, cohort)) return null
    const areOthersSame = tree?.cohortIds.every(id => this.#compiled(id) === this.#previous!.#compiled(id)) ?? true
    const areFlagsSame = this.#positionsOf(tree).every((position, index) => position === entry.positions[index])
    return areOthersSame && areFlagsSame ? entry : null
  }

  #newEntry(node: CohortNode): CohortEntry {
    const problems: string[] = []
    const compiled = this.#compile(node, message => problems.push(message))
    return { cohort: node.cohort, compiled, problems, positions: this.#positionsOf(node.tree) }
  }

  #positionsOf(tree: CohortTree | null): readonly (number | undefined)[] {
    return tree === null ? [] : Array.from(tree.flagIds, id => this.#shared.positionOfId.get(id))
  }

  /** Compiles a cohort after all cohorts that it refers to. */
  #compile(node: CohortNode, problem: (message: string) => void): Result<KnownCohort, UnknownReason> {
    if (node.unreadable !== null) problem(`it is invalid: ${node.unreadable}`)
    if (node.fault !== null) return err(node.fault)
    const { cohort, tree } = node
    if (cohort.isStatic) {
      const needs = new NeedsCollector()
      needs.staticCohorts = true
      return ok(this.#singleTestCohort(reader => reader.isInStaticCohort(cohort.id), needs))
    }
    // A cohort that describes nothing has no members.
    if (tree === null) return ok(this.#singleTestCohort(() => false, new NeedsCollector()))
    const others: KnownCohort[] = []
    for (const id of tree.cohortIds) {
      const other = this.#compiled(id)!
      if (!other.ok) return other
      others.push(other.value)
    }
    try {
      return ok(this.#compileTree(tree, others, problem))
    } catch (cause) {
      // Any error becomes a problem of this cohort only: the project's other cohorts and flags must still work.
      problem(`it cannot be compiled: ${cause instanceof Error ? cause.message : cause}`)
      return err('cohort_filters_parsing_error')
    }
  }

  #compileTree(tree: CohortTree, others: readonly KnownCohort[], problem: (message: string) => void): KnownCohort {
    const needs = new NeedsCollector()
    const compiler: FilterCompiler = { ...this.#shared, cohorts: this, needs, dependencyIds: new Set(), problem }
    let weight = 1
    const program = buildCohortProgram(tree.top, this.#shared.sharedTests.newPlace(), leaf => {
      if (leaf.kind === 'behavior') return false
      if (leaf.kind === 'test') {
        weight += estimateFilterWeight(leaf.filter)
        return compileFilter(leaf.filter, null, compiler)
      }
      if (leaf.wanted === null) return false
      return { program: this.#programOf(leaf.id), wanted: leaf.wanted }
    })
    for (const other of others) {
      needs.add(other.needs)
      weight += other.weight
    }
    return {
      ...makeKnownCohort(program, boundNeeds(needs), Math.min(weight, weightMax)),
      tree,
      isApproximated: tree.hasBehavior || others.some(other => other.isApproximated),
    }
  }

  #singleTestCohort(test: FilterTest, needs: NeedsCollector): KnownCohort {
    return makeKnownCohort(buildSingleTestProgram(test, this.#shared.sharedTests.newPlace()), needs, 1)
  }

  #programOf(id: number): CohortProgram {
    const other = this.#compiled(id)!
    if (!other.ok) throw new Error(`the cohort ${id} was to be compiled before`)
    return other.value.program
  }
}

/** Compares everything that compiling reads of a cohort. */
function isSameCohort(a: Cohort, b: Cohort): boolean {
  return a === b || (a.isStatic === b.isStatic && isSameJson(a.filters, b.filters))
}

function makeKnownCohort(program: CohortProgram, needs: FlagNeeds, weight: number): KnownCohort {
  return {
    program,
    isMember: (reader, decided) => evaluateCohort(program, reader, decided),
    isApproximated: false,
    tree: null,
    needs,
    weight,
  }
}

/** Bounds what a cohort adds to the needs of each cohort that refers to it, since there may be many of those. */
function boundNeeds(needs: NeedsCollector): FlagNeeds {
  if (needs.personKeys.size <= personKeysMax) return needs
  needs.personKeys.clear()
  needs.addPerson()
  return needs
}
