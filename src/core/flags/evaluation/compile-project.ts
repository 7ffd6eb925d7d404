// Compiles a project's definitions for evaluation, once per revision. An unreadable definition drops only its own flag
// and is listed among the problems, which the caller logs once.

import type { Project } from '../../project.ts'
import type { Flag } from '../definitions/flag.ts'
import { orderByDependencies } from '../definitions/flag-dependencies.ts'
import { UnreadableFilters } from '../definitions/flag-filters.ts'
import type { ProjectDefinitions } from '../definitions/project-definitions.ts'
import { type CompilationMemory, type FlagEntry, isFlagReusable, startCompilation } from './compilation-memory.ts'
import { ProjectCohorts } from './compile-cohorts.ts'
import { neverDecided, neverTested } from './compile-filter.ts'
import { type CompiledFlag, compileFlag, isVersion1Flag } from './compile-flag.ts'
import type { CompiledCohorts, ReachedCohort } from './compiled-cohort.ts'
import { type FlagNeeds, mergeFlagNeeds } from './flag-needs.ts'
import type { PersonKeys } from './person-properties.ts'

export interface CompiledProject {
  readonly project: Project
  readonly revision: number
  /** The compiled definitions themselves, for clients that evaluate locally. */
  readonly definitions: ProjectDefinitions
  /** The active flags by ascending id; undefined for an unreadable one. A flag's index here is its position. */
  readonly flags: readonly (CompiledFlag | undefined)[]
  readonly positionOfKey: ReadonlyMap<string, number>
  /**
   * Positions of the flags that can be answered, each after the flags that it depends on; flags caught in a cycle are left
   * out.
   */
  readonly order: readonly number[]
  /** Per position, the positions that the flag depends on. */
  readonly dependencies: readonly (readonly number[])[]
  /** Positions of the flags that depend on a missing flag. */
  readonly missingDependency: ReadonlySet<number>
  /** Whether flags depend on each other in a cycle; every answer then says that not everything could be computed. */
  readonly hasDependencyCycle: boolean
  /** True when some flag is for clients only or for servers only. */
  readonly hasRuntimeFlags: boolean
  readonly hasContextFlags: boolean
  /** Keys of all active flags with experience continuity on, even of those that cannot be evaluated. */
  readonly continuityFlagKeys: readonly string[]
  readonly personKeys: PersonKeys
  /** The cohorts; only those that some flag reaches are compiled. */
  readonly cohorts: CompiledCohorts
  /** How many answers an evaluation remembers: of tests that several flags share, and of cohorts. */
  readonly sharedTestCount: number
  /** By group type index; a hole is a type that does not exist. */
  readonly groupTypeNames: readonly (string | undefined)[]
  /** What all flags together may read. */
  readonly needs: FlagNeeds
  readonly readsGeoip: boolean
  /** What the process that loads the project logs, once. */
  readonly problems: readonly DefinitionProblem[]
  /** How many flags were compiled; the remaining flags come from the previous compilation. */
  readonly compiledFlagCount: number
  /** What the next compilation of this project reuses. */
  readonly memory: CompilationMemory
}

export interface DefinitionProblem {
  readonly flagId: number
  readonly flagKey: string
  readonly message: string
}

/** @param previous an earlier compilation of the same project, from which unchanged parts are reused. */
export function compileProject(
  definitions: ProjectDefinitions,
  previous: CompiledProject | null = null,
): CompiledProject {
  const steps = compileProjectInSteps(definitions, previous)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** `compileProject` in steps of one flag each: compiling thousands of flags at once would block the event loop. */
export function* compileProjectInSteps(
  definitions: ProjectDefinitions,
  previous: CompiledProject | null = null,
): Generator<undefined, CompiledProject> {
  const { project } = definitions
  const problems: DefinitionProblem[] = []
  const existing = definitions.flags.filter(flag => !flag.deleted && !flag.hasEncryptedPayloads)
  const active = existing.filter(flag => flag.active)
  const positionOfId = new Map(active.map((flag, position) => [flag.id, position]))
  for (const flag of existing) {
    if (!isVersion1Flag(flag)) positionOfId.set(flag.id, neverTested)
    else if (!flag.active) positionOfId.set(flag.id, neverDecided)
  }
  const settings = { timezone: project.timezone, propertyMatchingVersion: project.propertyMatchingVersion }
  const before = startCompilation(previous?.memory ?? null, settings, active.length)
  const { personKeys, sharedTests } = before
  const shared = { settings, personKeys, sharedTests, positionOfId }
  const cohorts = new ProjectCohorts(definitions.cohorts, shared, before.cohorts)
  const entries = new Map<number, FlagEntry>()
  let compiledFlagCount = 0

  const compileOrReuse = (flag: Flag): CompiledFlag | undefined => {
    const addProblem = (message: string) => problems.push({ flagId: flag.id, flagKey: flag.key, message })
    const known = before.entries.get(flag.id)
    if (known !== undefined && isFlagReusable(known, flag, positionOfId, id => cohorts.reach(id, addProblem).cohort)) {
      entries.set(flag.id, known)
      known.problems.forEach(addProblem)
      return known.compiled
    }
    compiledFlagCount++
    const own: string[] = []
    const reached: [id: number, cohort: ReachedCohort['cohort']][] = []
    const reach: CompiledCohorts['reach'] = id => {
      const found = cohorts.reach(id, addProblem)
      reached.push([id, found.cohort])
      return found
    }
    try {
      const compiled = compileFlag(flag, { ...shared, cohorts: { reach }, problem: message => own.push(message) })
      const positions = compiled.dependencyIds.map(id => positionOfId.get(id))
      entries.set(flag.id, { flag, compiled, problems: own, positions, cohorts: reached })
      own.forEach(addProblem)
      return compiled
    } catch (cause) {
      // Any error becomes a problem of this flag only: the project's other flags (and other projects) must still work.
      own.forEach(addProblem)
      const verb = cause instanceof UnreadableFilters ? 'read' : 'compiled'
      addProblem(`omitted because its definition cannot be ${verb}: ${cause instanceof Error ? cause.message : cause}`)
      return undefined
    }
  }
  const compiled: (CompiledFlag | undefined)[] = []
  for (const flag of active) {
    compiled.push(compileOrReuse(flag))
    yield
  }
  cohorts.forgetPrevious()
  const unreadable = active.filter((_flag, position) => compiled[position] === undefined)
  for (const flag of unreadable) positionOfId.delete(flag.id)
  const { order, missing, cyclic } = orderByDependencies(
    compiled.map(flag => flag?.dependencyIds),
    positionOfId,
  )
  const answered = order.map(position => compiled[position]!)
  const findPositions = (ids: readonly number[]): number[] =>
    ids.map(id => positionOfId.get(id)).filter(position => position !== undefined && position >= 0) as number[]
  const groupTypeNames: (string | undefined)[] = []
  for (const type of definitions.groupTypes) groupTypeNames[type.index] = type.name
  const compiledCount = before.compiledCount + compiledFlagCount
  return {
    ...{ project, revision: definitions.revision, definitions, flags: compiled, order },
    positionOfKey: new Map(order.map((position, index) => [answered[index]!.key, position])),
    dependencies: compiled.map(flag => findPositions(flag?.dependencyIds ?? [])),
    missingDependency: missing,
    hasDependencyCycle: cyclic.size > 0,
    hasRuntimeFlags: answered.some(flag => flag.runtime !== 'all'),
    hasContextFlags: answered.some(flag => flag.contexts.length > 0),
    continuityFlagKeys: active
      .filter(flag => flag.ensureExperienceContinuity && isVersion1Flag(flag))
      .map(({ key }) => key),
    ...{ personKeys, cohorts, groupTypeNames, problems, compiledFlagCount },
    sharedTestCount: sharedTests.count,
    needs: mergeFlagNeeds(answered),
    readsGeoip: personKeys.readsGeoip(),
    memory: { settings, personKeys, sharedTests, cohorts, entries, compiledCount },
  }
}
