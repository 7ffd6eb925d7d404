// Checks that what a flag or a cohort refers to exists, and that no reference leads to a cycle. Stored definitions may have
// such faults if validation was skipped; the evaluator handles both faults, but rarely as the author intended.

import type { DefinitionLinks, DefinitionReference, LinkedDefinition } from './definition-links.ts'
import type { FlagIssue } from './flag-issue.ts'

/** The definition that is being written. */
export interface ReferringDefinition {
  readonly kind: 'flag' | 'cohort'
  /** Null for a new definition; nothing can refer to it yet. */
  readonly id: number | null
  /** Key of a flag, name of a cohort. */
  readonly name: string
}

/**
 * Reports references to what does not exist or is deleted, and references that lead to a cycle, each with the path of
 * its value. Inactive flags count like active ones, so that activating a flag never closes a cycle.
 * Source: docs/wire/evaluation.md 5.11, 5.12; that they are refused: ours.
 */
export function findReferenceIssuesOf(
  written: ReferringDefinition,
  references: readonly DefinitionReference[],
  links: DefinitionLinks,
): FlagIssue[] {
  const graph = new Graph(written, references, links)
  const issues: FlagIssue[] = []
  for (const { kind, id, path } of references) {
    if (kind === 'group_type') {
      // An unused index is allowed: its group type is created with the type's first event, as in PostHog.
      const type = links.groupTypes.find(({ index }) => index === id)
      if (type?.isBeingDeleted === true) issues.push(createGroupTypeIssue(type, path))
      continue
    }
    if (kind === 'experiment') {
      if (links.experimentIds.includes(id)) continue
      const message = `The project has no experiment with the id ${id}, or it is deleted. Use null for a split without an experiment.`
      issues.push({ path, code: 'invalid_input', message })
      continue
    }
    if (!graph.has(kind, id)) {
      const message = `The project has no ${kind} with the id ${id}, or it is deleted: restore it first, or remove this filter.`
      issues.push({ path, code: 'invalid_input', message })
      continue
    }
    const cycle = graph.cycleBehind(kind, id)
    if (cycle !== null) {
      const message = `This creates a cycle: ${cycle.join(' → ')}. A value cannot depend on itself.`
      issues.push({ path, code: 'invalid_input', message })
    }
  }
  return issues
}

function createGroupTypeIssue({ index, name }: DefinitionLinks['groupTypes'][number], path: string): FlagIssue {
  const message = `The group type ${index} (${name}) is being deleted. Its index can be reused afterwards; groups_types/ lists existing group types.`
  return { path, code: 'invalid_input', message }
}

/** At most this many members of a cycle are named. */
const namedMembersMax = 20

type Kind = ReferringDefinition['kind']
/** `flag:7`; `flag:null` for a written definition without an id. */
type Node = `${Kind}:${number | null}`

class Graph {
  readonly #names = new Map<Node, string>()
  readonly #edges = new Map<Node, readonly Node[]>()
  readonly #written: Node
  /** Nodes from which no cycle can be reached. */
  readonly #harmless = new Set<Node>()

  constructor(written: ReferringDefinition, references: readonly DefinitionReference[], links: DefinitionLinks) {
    for (const flag of links.flags) this.#add('flag', flag)
    for (const cohort of links.cohorts) this.#add('cohort', cohort)
    this.#written = `${written.kind}:${written.id}`
    this.#names.set(this.#written, written.name)
    this.#edges.set(
      this.#written,
      references.flatMap(({ kind, id }): Node[] => (kind === 'flag' || kind === 'cohort' ? [`${kind}:${id}`] : [])),
    )
  }

  has(kind: Kind, id: number): boolean {
    return this.#names.has(`${kind}:${id}`)
  }

  /**
   * The members of a cycle that this reference leads to, with the first repeated at the end; null when there is none.
   */
  cycleBehind(kind: Kind, id: number): string[] | null {
    const path: { readonly node: Node; next: number }[] = []
    const open = new Set<Node>([this.#written])
    const enter = (node: Node): string[] | null => {
      if (open.has(node)) {
        const nodes = [this.#written, ...path.map(step => step.node)]
        return this.#named([...nodes.slice(nodes.indexOf(node)), node])
      }
      if (this.#harmless.has(node)) return null
      open.add(node)
      path.push({ node, next: 0 })
      return null
    }
    const first = enter(`${kind}:${id}`)
    if (first !== null) return first
    while (path.length > 0) {
      const step = path.at(-1)!
      const edges = this.#edges.get(step.node) ?? []
      if (step.next < edges.length) {
        const cycle = enter(edges[step.next++]!)
        if (cycle !== null) return cycle
        continue
      }
      path.pop()
      open.delete(step.node)
      this.#harmless.add(step.node)
    }
    return null
  }

  #add(kind: Kind, { id, name, flagIds, cohortIds }: LinkedDefinition): void {
    const node: Node = `${kind}:${id}`
    this.#names.set(node, name)
    this.#edges.set(node, [
      ...flagIds.map((flagId): Node => `flag:${flagId}`),
      ...cohortIds.map((cohortId): Node => `cohort:${cohortId}`),
    ])
  }

  #named(cycle: readonly Node[]): string[] {
    const names = cycle.slice(0, namedMembersMax).map(node => this.#nameOf(node))
    return cycle.length > namedMembersMax ? [...names, '…'] : names
  }

  #nameOf(node: Node): string {
    const [kind] = node.split(':')
    return `${kind} "${(this.#names.get(node) ?? '').slice(0, 80)}"`
  }
}

/** The flags and cohorts that refer directly to a cohort, named for people: `flag "beta"`. */
export function listUsersOfCohort(cohortId: number, { flags, cohorts }: DefinitionLinks): string[] {
  const uses = ({ cohortIds }: LinkedDefinition) => cohortIds.includes(cohortId)
  return [
    ...flags.filter(uses).map(createLabeller('flag')),
    ...cohorts.filter(cohort => cohort.id !== cohortId && uses(cohort)).map(createLabeller('cohort')),
  ]
}

/** The flags whose rules belong to an experiment, formatted like the result of `listUsersOfCohort`. */
export function listUsersOfExperiment(experimentId: number, { flags }: DefinitionLinks): string[] {
  return flags.filter(({ experimentIds }) => experimentIds.includes(experimentId)).map(createLabeller('flag'))
}

function createLabeller(kind: Kind): (definition: LinkedDefinition) => string {
  return ({ name }) => `${kind} "${name.slice(0, 80)}"`
}
