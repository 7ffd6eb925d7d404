// Whether what a flag or a cohort refers to is there, and whether it comes back to itself on the way. Stored definitions may
// do either (validation was skipped); the evaluator has an answer for both, but rarely the one that was meant.

import type { DefinitionLinks, DefinitionReference, LinkedDefinition } from './definition-links.ts'
import type { FlagIssue } from './flag-issue.ts'

/** What is being written. */
export interface ReferringDefinition {
  readonly kind: 'flag' | 'cohort'
  /** Null for a new definition, to which nothing can refer yet. */
  readonly id: number | null
  /** Key of a flag, name of a cohort. */
  readonly name: string
}

/**
 * References to what does not exist or is deleted, and those through which a cycle is reached, each with the path of the
 * value. Inactive flags count like others, so that switching one on never closes a cycle.
 * Source: docs/wire/evaluation.md 5.11, 5.12; that they are refused: ours.
 */
export function referenceIssues(
  written: ReferringDefinition,
  references: readonly DefinitionReference[],
  links: DefinitionLinks,
): FlagIssue[] {
  const graph = new Graph(written, references, links)
  const issues: FlagIssue[] = []
  for (const { kind, id, path } of references) {
    if (kind === 'group_type') {
      // A free index may be named: its type comes with its first event, as in PostHog.
      const type = links.groupTypes.find(({ index }) => index === id)
      if (type?.isBeingDeleted === true) issues.push(isBeingDeleted(type, path))
      continue
    }
    if (!graph.has(kind, id)) {
      const message = `There is no ${kind} with the id ${id} here, or it is deleted: then bring that one back first, or take this filter out.`
      issues.push({ path, code: 'invalid_input', message })
      continue
    }
    const cycle = graph.cycleBehind(kind, id)
    if (cycle !== null) {
      const message = `This leads to a cycle: ${cycle.join(' → ')}. A value cannot depend on itself.`
      issues.push({ path, code: 'invalid_input', message })
    }
  }
  return issues
}

function isBeingDeleted({ index, name }: DefinitionLinks['groupTypes'][number], path: string): FlagIssue {
  const message = `The group type ${index} (${name}) is being deleted. Its index is free again once it is gone; groups_types/ lists those there are.`
  return { path, code: 'invalid_input', message }
}

/** Longer cycles are told by their beginning. */
const namedMembersMax = 20

type Kind = ReferringDefinition['kind']
/** `flag:7`; the one that is written may have no id yet: `flag:null`. */
type Node = `${Kind}:${number | null}`

class Graph {
  private readonly names = new Map<Node, string>()
  private readonly edges = new Map<Node, readonly Node[]>()
  private readonly written: Node
  /** Nothing behind them comes back to a node before it, whatever reference led there. */
  private readonly harmless = new Set<Node>()

  constructor(written: ReferringDefinition, references: readonly DefinitionReference[], links: DefinitionLinks) {
    for (const flag of links.flags) this.add('flag', flag)
    for (const cohort of links.cohorts) this.add('cohort', cohort)
    this.written = `${written.kind}:${written.id}`
    this.names.set(this.written, written.name)
    this.edges.set(
      this.written,
      references.flatMap(({ kind, id }): Node[] => (kind === 'group_type' ? [] : [`${kind}:${id}`])),
    )
  }

  has(kind: Kind, id: number): boolean {
    return this.names.has(`${kind}:${id}`)
  }

  /** The members of a cycle that a reference of the written definition leads to, the first one again at the end; or null. */
  cycleBehind(kind: Kind, id: number): string[] | null {
    const path: { readonly node: Node; next: number }[] = []
    const open = new Set<Node>([this.written])
    const enter = (node: Node): string[] | null => {
      if (open.has(node)) {
        const nodes = [this.written, ...path.map(step => step.node)]
        return this.named([...nodes.slice(nodes.indexOf(node)), node])
      }
      if (this.harmless.has(node)) return null
      open.add(node)
      path.push({ node, next: 0 })
      return null
    }
    const first = enter(`${kind}:${id}`)
    if (first !== null) return first
    while (path.length > 0) {
      const step = path.at(-1)!
      const edges = this.edges.get(step.node) ?? []
      if (step.next < edges.length) {
        const cycle = enter(edges[step.next++]!)
        if (cycle !== null) return cycle
        continue
      }
      path.pop()
      open.delete(step.node)
      this.harmless.add(step.node)
    }
    return null
  }

  private add(kind: Kind, { id, name, flagIds, cohortIds }: LinkedDefinition): void {
    const node: Node = `${kind}:${id}`
    this.names.set(node, name)
    this.edges.set(node, [
      ...flagIds.map((flagId): Node => `flag:${flagId}`),
      ...cohortIds.map((cohortId): Node => `cohort:${cohortId}`),
    ])
  }

  private named(cycle: readonly Node[]): string[] {
    const names = cycle.slice(0, namedMembersMax).map(node => this.nameOf(node))
    return cycle.length > namedMembersMax ? [...names, '…'] : names
  }

  private nameOf(node: Node): string {
    const [kind] = node.split(':')
    return `${kind} "${(this.names.get(node) ?? '').slice(0, 80)}"`
  }
}

/** The flags and cohorts that refer to a cohort itself, as people know them: `flag "beta"`. */
export function usersOfCohort(cohortId: number, links: DefinitionLinks): string[] {
  const using = (kind: Kind, definitions: readonly LinkedDefinition[]) =>
    definitions
      .filter(({ id, cohortIds }) => cohortIds.includes(cohortId) && !(kind === 'cohort' && id === cohortId))
      .map(({ name }) => `${kind} "${name.slice(0, 80)}"`)
  return [...using('flag', links.flags), ...using('cohort', links.cohorts)]
}
