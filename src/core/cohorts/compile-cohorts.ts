// A project's cohorts compiled for evaluation: those that its flags reach, each once, when the first flag names it.
// Source: docs/wire/evaluation.md 5.11.

import { compileFilter, type FilterCompiler, filterWeight } from '../flags/compile-filter.ts'
import type { CompiledCohort, CompiledCohorts, ReachedCohort } from '../flags/compiled-cohort.ts'
import { type FlagNeeds, NeedsCollector } from '../flags/flag-needs.ts'
import type { UnknownReason } from '../flags/flag-outcome.ts'
import { err, ok, type Result } from '../result.ts'
import type { Cohort } from './cohort.ts'
import { CohortGraph, type CohortNode } from './cohort-graph.ts'
import { type CohortProgram, cohortProgram, singleTestProgram, walkCohort } from './cohort-program.ts'
import type { CohortTree } from './cohort-tree.ts'

type SharedCompiler = Pick<FilterCompiler, 'settings' | 'personKeys' | 'sharedTests' | 'positionOfId'>

interface KnownCohort extends CompiledCohort {
  readonly program: CohortProgram
}

/** A cohort that reads more keys than this reads the person: hardly any request brings all of them. */
const personKeysMax = 64
/** Beyond, a flag is looked at as often as can be anyway. */
const weightMax = 4_096

export class ProjectCohorts implements CompiledCohorts {
  private readonly graph: CohortGraph
  private readonly shared: SharedCompiler
  private readonly compiled = new Map<number, Result<KnownCohort, UnknownReason>>()

  /** @param cohorts the ones that exist: not deleted. */
  constructor(cohorts: readonly Cohort[], shared: SharedCompiler) {
    this.graph = new CohortGraph(cohorts)
    this.shared = shared
  }

  reach(id: number, problem: (message: string) => void): ReachedCohort {
    for (const node of this.graph.reach(id)) {
      const told = (message: string) => problem(`the cohort ${node.cohort.id}: ${message}`)
      this.compiled.set(node.cohort.id, this.compile(node, told))
    }
    return {
      cohort: this.compiled.get(id) ?? err('dependency_not_found_cohort'),
      dependencyIds: this.graph.flagIdsFrom(id),
    }
  }

  /** The cohorts that it refers to have been compiled. */
  private compile(node: CohortNode, problem: (message: string) => void): Result<KnownCohort, UnknownReason> {
    if (node.unreadable !== null) problem(`it cannot be read: ${node.unreadable}`)
    if (node.fault !== null) return err(node.fault)
    const { cohort, tree } = node
    if (cohort.isStatic) return ok(this.staticCohort(cohort.id))
    if (tree === null) return ok(this.emptyCohort())
    const others: KnownCohort[] = []
    for (const id of tree.cohortIds) {
      const other = this.compiled.get(id)!
      if (!other.ok) return other
      others.push(other.value)
    }
    try {
      return ok(this.compileTree(tree, others, problem))
    } catch (cause) {
      // Whatever it is, the project's other cohorts and flags go on.
      problem(`it cannot be compiled: ${cause instanceof Error ? cause.message : cause}`)
      return err('cohort_filters_parsing_error')
    }
  }

  private compileTree(
    tree: CohortTree,
    others: readonly KnownCohort[],
    problem: (message: string) => void,
  ): KnownCohort {
    const needs = new NeedsCollector()
    const compiler: FilterCompiler = { ...this.shared, cohorts: this, needs, dependencyIds: new Set(), problem }
    let weight = 1
    const program = cohortProgram(tree.top, this.shared.sharedTests.newPlace(), leaf => {
      if (leaf.kind === 'behavior') return false
      if (leaf.kind === 'test') {
        weight += filterWeight(leaf.filter)
        return compileFilter(leaf.filter, null, compiler)
      }
      if (leaf.wanted === null) return false
      return { program: this.programOf(leaf.id), wanted: leaf.wanted }
    })
    for (const other of others) {
      needs.add(other.needs)
      weight += other.weight
    }
    return {
      ...known(program, boundedNeeds(needs), Math.min(weight, weightMax)),
      tree,
      isApproximated: tree.hasBehavior || others.some(other => other.isApproximated),
    }
  }

  private staticCohort(id: number): KnownCohort {
    const needs = new NeedsCollector()
    needs.staticCohorts = true
    const place = this.shared.sharedTests.newPlace()
    return known(
      singleTestProgram(reader => reader.isInStaticCohort(id), place),
      needs,
      1,
    )
  }

  /** Nothing is described, so nobody is a member. */
  private emptyCohort(): KnownCohort {
    const place = this.shared.sharedTests.newPlace()
    return known(
      singleTestProgram(() => false, place),
      new NeedsCollector(),
      1,
    )
  }

  private programOf(id: number): CohortProgram {
    const other = this.compiled.get(id)!
    if (!other.ok) throw new Error(`the cohort ${id} was to be compiled before`)
    return other.value.program
  }
}

function known(program: CohortProgram, needs: FlagNeeds, weight: number): KnownCohort {
  return {
    program,
    isMember: (reader, decided) => walkCohort(program, reader, decided),
    isApproximated: false,
    tree: null,
    needs,
    weight,
  }
}

/** So that what a cohort adds to those that refer to it stays small, however many there are. */
function boundedNeeds(needs: NeedsCollector): FlagNeeds {
  if (needs.personKeys.size <= personKeysMax) return needs
  needs.personKeys.clear()
  needs.addPerson()
  return needs
}
