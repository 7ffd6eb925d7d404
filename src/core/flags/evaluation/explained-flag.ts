// What an explanation knows: the part of a project that one flag's value depends on, compiled as if the flag were active,
// and its traced evaluation for one subject. Other flags are left out, so that explaining a flag costs only what that
// flag costs. `services/flags/explain-flag.ts` evaluates it.

import type { Flag } from '../definitions/flag.ts'
import type { CompiledFlag } from './compile-flag.ts'
import { type CompiledProject, compileProject } from './compile-project.ts'
import type { FlagEvaluation } from './evaluate-flags.ts'
import type { EvaluationRequest } from './evaluation-request.ts'
import type { EvaluationSubject } from './evaluation-subject.ts'
import type { EvaluationTrace } from './evaluation-trace.ts'

/** Why an answer of /flags leaves a flag out. */
export const leftOutReasons = [
  'deleted',
  'inactive',
  'encrypted_payloads',
  'unreadable',
  'dependency_cycle',
  'filtered_out',
] as const
export type LeftOutReason = (typeof leftOutReasons)[number]

export interface ExplainedFlag extends ProjectToExplain {
  /** The flag as stored. */
  readonly stored: Flag
  /** Null when answers of /flags include the flag. */
  readonly leftOut: LeftOutReason | null
  /** Evaluated as if the flag were active and not filtered out. */
  readonly evaluation: FlagEvaluation
  readonly trace: EvaluationTrace
  readonly subject: EvaluationSubject
  readonly request: EvaluationRequest
  /** Whether the stored person was read, and the group types whose stored group was read. */
  readonly readsPerson: boolean
  readonly groupTypesRead: readonly number[]
}

export interface ProjectToExplain {
  readonly project: CompiledProject
  /** The flag's position in `project.flags`. */
  readonly position: number
  /** Undefined when its definition cannot be read: `project.problems` says why. */
  readonly flag: CompiledFlag | undefined
}

/** @param flag as stored; need not be active, nor among the served definitions. */
export function buildProjectToExplain(served: CompiledProject, flag: Flag): ProjectToExplain {
  const target: Flag = { ...flag, active: true, deleted: false, hasEncryptedPayloads: false }
  const alone = compileProject({ ...served.definitions, flags: [target] })
  const reached = collectReachedIds(served, target.id, alone.flags[0]?.dependencyIds ?? [])
  const others = served.definitions.flags.filter(({ id }) => id !== target.id && reached.has(id))
  const flags = [...others, target].sort((a, b) => a.id - b.id)
  const project = compileProject({ ...served.definitions, flags })
  const position = project.flags.findIndex(compiled => compiled?.id === target.id)
  return { project, position, flag: project.flags[position] }
}

/**
 * The ids reached from a flag, including its own. An inactive flag depends on nothing: it is false whatever it tests.
 */
function collectReachedIds(served: CompiledProject, flagId: number, dependencyIds: readonly number[]): Set<number> {
  const dependenciesOf = new Map(served.flags.map(flag => [flag?.id ?? -1, flag?.dependencyIds ?? []]))
  dependenciesOf.set(flagId, dependencyIds)
  const reached = new Set<number>()
  const open = [flagId]
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (reached.has(id)) continue
    reached.add(id)
    for (const tested of dependenciesOf.get(id) ?? []) open.push(tested)
  }
  return reached
}

export interface MissingDependency {
  /** Id of the flag that does not exist or cannot be read. */
  readonly id: number
  /** Key of the flag that tests the missing flag. */
  readonly testedBy: string
}

/** Explains `missing_dependency`: lists every reached flag that does not exist or cannot be read. */
export function listMissingDependencies({ project }: ProjectToExplain): MissingDependency[] {
  const existing = new Set(project.definitions.flags.filter(flag => !flag.hasEncryptedPayloads).map(flag => flag.id))
  const active = listActiveFlags(project)
  for (const [position, flag] of project.flags.entries()) if (flag === undefined) existing.delete(active[position]!.id)
  return project.flags.flatMap(flag =>
    (flag?.dependencyIds ?? []).filter(id => !existing.has(id)).map(id => ({ id, testedBy: flag!.key })),
  )
}

function listActiveFlags({ definitions }: CompiledProject): readonly Flag[] {
  return definitions.flags.filter(flag => flag.active && !flag.deleted && !flag.hasEncryptedPayloads)
}

/**
 * Finds a dependency cycle that contains the flag or can be reached from it.
 * @returns the keys of its flags, each of which tests the next, with the first repeated at the end; null without a cycle.
 */
export function findDependencyCycle({ project, position }: ProjectToExplain): readonly string[] | null {
  const answered = new Set(project.order)
  if (position < 0 || answered.has(position)) return null
  const path: number[] = []
  const seen = new Set<number>()
  // Every unanswered flag waits for another unanswered flag, so following any of them ends in a cycle.
  for (let next: number | undefined = position; next !== undefined; ) {
    if (seen.has(next)) return [...path.slice(path.indexOf(next)), next].map(at => project.flags[at]!.key)
    seen.add(next)
    path.push(next)
    next = project.dependencies[next]!.find(dependency => !answered.has(dependency) && project.flags[dependency])
  }
  return null
}
