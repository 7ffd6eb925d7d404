// The graph of cohorts that refer to each other. Reads each reached cohort once, orders each after those that it refers
// to, and marks those that can never be resolved. Takes time proportional to the number of reached cohorts. Source:
// docs/wire/evaluation.md 5.11.

import type { Cohort } from '../definitions/cohort.ts'
import { type CohortTree, readCohortTree } from '../definitions/cohort-tree.ts'
import { orderByDependencies } from '../definitions/flag-dependencies.ts'
import { UnreadableFilters } from '../definitions/flag-filters.ts'

/** Why a flag that reaches the cohort fails. If several faults apply, the first in this list counts. */
export const cohortFaults = [
  'cohort_filters_parsing_error',
  'dependency_not_found_cohort',
  'dependency_cycle_cohort',
] as const
export type CohortFault = (typeof cohortFaults)[number]

export interface CohortNode {
  readonly cohort: Cohort
  /** Null when the cohort is static, cannot be read, or describes nothing. */
  readonly tree: CohortTree | null
  /** Why the cohort cannot be read. */
  readonly unreadable: string | null
  /** The cohort's own fault, or a fault of a cohort that it refers to. */
  readonly fault: CohortFault | null
  /** Whether the cohort, or a cohort that it refers to, tests a flag; also true when that is unknown. */
  readonly reachesFlags: boolean
}

type OpenNode = { -readonly [Field in keyof CohortNode]: CohortNode[Field] }

const noIds: readonly number[] = []

export class CohortGraph {
  readonly #cohorts: ReadonlyMap<number, Cohort>
  readonly #nodes = new Map<number, OpenNode>()
  readonly #flagIdsOf = new Map<number, readonly number[]>()

  /** @param cohorts a project's cohorts, without the deleted ones. */
  constructor(cohorts: readonly Cohort[]) {
    this.#cohorts = new Map(cohorts.map(cohort => [cohort.id, cohort]))
  }

  /** Undefined when the cohort does not exist or was not reached. */
  node(id: number): CohortNode | undefined {
    return this.#nodes.get(id)
  }

  /** @returns the newly reached cohorts: first the cohorts without a fault, each after the cohorts that it refers to. */
  reach(id: number): readonly CohortNode[] {
    const reached = this.#readFrom(id)
    const dependents = new Map<number, OpenNode[]>()
    for (const node of reached)
      for (const other of getCohortIds(node)) dependents.getOrInsertComputed(other, () => []).push(node)
    for (const fault of cohortFaults) {
      assignFault(
        fault,
        reached.filter(node => node.fault === null && this.#faultHere(node) === fault),
        dependents,
      )
    }
    const sound = reached.filter(node => node.fault === null)
    const positions = new Map(sound.map(({ cohort }, position) => [cohort.id, position]))
    const { order, cyclic } = orderByDependencies(sound.map(getCohortIds), positions)
    for (const position of cyclic) sound[position]!.fault = 'dependency_cycle_cohort'
    const ordered = order.map(position => sound[position]!)
    for (const node of ordered) {
      const flagIds = node.tree?.flagIds ?? noIds
      node.reachesFlags = flagIds.length > 0 || getCohortIds(node).some(other => this.#nodes.get(other)!.reachesFlags)
    }
    return [...ordered, ...reached.filter(node => node.fault !== null)]
  }

  /** Ids of the flags that are tested by a reached cohort, or by the cohorts that it refers to. */
  flagIdsFrom(id: number): readonly number[] {
    const known = this.#flagIdsOf.get(id)
    if (known !== undefined) return known
    const flagIds = new Set<number>()
    const seen = new Set<number>()
    const open = [id]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const node = this.#nodes.get(next)
      if (node === undefined || !node.reachesFlags || seen.has(next)) continue
      seen.add(next)
      for (const flagId of node.tree?.flagIds ?? noIds) flagIds.add(flagId)
      for (const cohortId of getCohortIds(node)) open.push(cohortId)
    }
    const ids = flagIds.size === 0 ? noIds : [...flagIds]
    this.#flagIdsOf.set(id, ids)
    return ids
  }

  #readFrom(id: number): OpenNode[] {
    const reached: OpenNode[] = []
    const open = [id]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const cohort = this.#cohorts.get(next)
      if (cohort === undefined || this.#nodes.has(next)) continue
      const node = readNode(cohort)
      this.#nodes.set(next, node)
      reached.push(node)
      for (const other of getCohortIds(node)) open.push(other)
    }
    return reached
  }

  /** The fault of a node itself, or of a node that it refers to and that was reached earlier. */
  #faultHere(node: OpenNode): CohortFault | null {
    if (node.unreadable !== null) return 'cohort_filters_parsing_error'
    let worst: number = cohortFaults.length
    for (const id of getCohortIds(node)) {
      const other = this.#nodes.get(id)
      const fault = other === undefined ? 'dependency_not_found_cohort' : other.fault
      if (fault !== null) worst = Math.min(worst, cohortFaults.indexOf(fault))
    }
    return cohortFaults[worst] ?? null
  }
}

type ReadFilters = Pick<CohortNode, 'tree' | 'unreadable'>

/** A cache. An entry lives as long as the cohort object, which newer definitions reuse until the cohort changes. */
const readFiltersOf = new WeakMap<Cohort, ReadFilters>()

function readNode(cohort: Cohort): OpenNode {
  let read = readFiltersOf.get(cohort)
  if (read === undefined) {
    read = readFilters(cohort)
    readFiltersOf.set(cohort, read)
  }
  return { cohort, ...read, fault: null, reachesFlags: true }
}

function readFilters(cohort: Cohort): ReadFilters {
  if (cohort.isStatic) return { tree: null, unreadable: null }
  try {
    return { tree: readCohortTree(cohort.filters), unreadable: null }
  } catch (cause) {
    if (!(cause instanceof UnreadableFilters)) throw cause
    return { tree: null, unreadable: cause.message }
  }
}

function getCohortIds(node: CohortNode): readonly number[] {
  return node.tree?.cohortIds ?? noIds
}

/** Assigns the fault to the nodes of `from` and to all nodes that refer to them. */
function assignFault(fault: CohortFault, from: OpenNode[], dependents: ReadonlyMap<number, readonly OpenNode[]>): void {
  for (let node = from.pop(); node !== undefined; node = from.pop()) {
    if (node.fault !== null) continue
    node.fault = fault
    for (const dependent of dependents.get(node.cohort.id) ?? []) from.push(dependent)
  }
}
