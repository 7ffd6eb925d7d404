// A project's definitions compiled for evaluation, once per revision. One unreadable definition drops that flag alone and
// is named among the problems, for whoever holds the project to log once.

import { ProjectCohorts } from '../cohorts/compile-cohorts.ts'
import type { Project } from '../project.ts'
import { type CompiledFlag, compileFlag } from './compile-flag.ts'
import type { CompiledCohorts } from './compiled-cohort.ts'
import type { Flag } from './flag.ts'
import { orderDependencies } from './flag-dependencies.ts'
import { UnreadableFilters } from './flag-filters.ts'
import { type FlagNeeds, unionOfNeeds } from './flag-needs.ts'
import { PersonKeys } from './person-properties.ts'
import type { ProjectDefinitions } from './project-definitions.ts'
import { SharedTests } from './shared-tests.ts'

export interface CompiledProject {
  readonly project: Project
  readonly revision: number
  /** What all this was made of, for clients that evaluate by themselves. */
  readonly definitions: ProjectDefinitions
  /** The active flags by ascending id; undefined for one that cannot be read. A position in here names a flag. */
  readonly flags: readonly (CompiledFlag | undefined)[]
  readonly positionOfKey: ReadonlyMap<string, number>
  /** Positions of the flags that can be answered, each after those it depends on; without those caught in a cycle. */
  readonly order: readonly number[]
  /** Per position: the positions it depends on. */
  readonly dependencies: readonly (readonly number[])[]
  /** Positions of flags that depend on one that does not exist. */
  readonly missingDependency: ReadonlySet<number>
  /** Every answer then says that not everything could be computed. */
  readonly hasDependencyCycle: boolean
  /** Some flag is for clients or for servers only. */
  readonly hasRuntimeFlags: boolean
  readonly hasContextFlags: boolean
  /** Keys of all active flags with experience continuity on, those that cannot be evaluated included. */
  readonly continuityFlagKeys: readonly string[]
  readonly personKeys: PersonKeys
  /** Those that some flag reaches are compiled. */
  readonly cohorts: CompiledCohorts
  /** How many answers an evaluation remembers: of tests that stand in several flags, and of cohorts. */
  readonly sharedTestCount: number
  /** By index; a hole is a type that does not exist. */
  readonly groupTypeNames: readonly (string | undefined)[]
  /** What all flags together may read. */
  readonly needs: FlagNeeds
  readonly readsGeoip: boolean
  /** What whoever loads the project should log, once. */
  readonly problems: readonly DefinitionProblem[]
}

export interface DefinitionProblem {
  readonly flagId: number
  readonly flagKey: string
  readonly message: string
}

export function compileProject(definitions: ProjectDefinitions): CompiledProject {
  const steps = compileProjectSteps(definitions)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** As `compileProject`, a flag a step: thousands of them would hold the event loop. */
export function* compileProjectSteps(definitions: ProjectDefinitions): Generator<undefined, CompiledProject> {
  const { project } = definitions
  const problems: DefinitionProblem[] = []
  const personKeys = new PersonKeys()
  const sharedTests = new SharedTests()
  const existing = definitions.flags.filter(flag => !flag.deleted && !flag.hasEncryptedPayloads)
  const active = existing.filter(flag => flag.active)
  const positionOfId = new Map(active.map((flag, position) => [flag.id, position]))
  // Behind the active ones, so that a test of an inactive flag finds a position that is never decided: false.
  for (const flag of existing) if (!flag.active) positionOfId.set(flag.id, positionOfId.size)
  const settings = { timezone: project.timezone, propertyMatchingVersion: project.propertyMatchingVersion }
  const cohorts = new ProjectCohorts(definitions.cohorts, { settings, personKeys, sharedTests, positionOfId })

  const compileOne = (flag: Flag): CompiledFlag | undefined => {
    const problem = (message: string) => problems.push({ flagId: flag.id, flagKey: flag.key, message })
    try {
      return compileFlag(flag, {
        settings,
        personKeys,
        sharedTests,
        cohorts,
        positionOfId,
        problem,
      })
    } catch (cause) {
      // Whatever it is, the project's other flags (and other projects) go on.
      const verb = cause instanceof UnreadableFilters ? 'read' : 'compiled'
      problem(`left out, because its definition cannot be ${verb}: ${cause instanceof Error ? cause.message : cause}`)
      return undefined
    }
  }
  const compiled: (CompiledFlag | undefined)[] = []
  for (const flag of active) {
    compiled.push(compileOne(flag))
    yield
  }
  const unreadable = active.filter((_flag, position) => compiled[position] === undefined)
  for (const flag of unreadable) positionOfId.delete(flag.id)
  const { order, missing, cyclic } = orderDependencies(
    compiled.map(flag => flag?.dependencyIds),
    positionOfId,
  )
  const parts = { active, compiled, order, missing, cyclic, positionOfId, personKeys, cohorts, sharedTests, problems }
  return assemble(definitions, parts)
}

interface Parts {
  readonly active: readonly Flag[]
  readonly compiled: readonly (CompiledFlag | undefined)[]
  readonly order: readonly number[]
  readonly missing: ReadonlySet<number>
  readonly cyclic: ReadonlySet<number>
  readonly positionOfId: ReadonlyMap<number, number>
  readonly personKeys: PersonKeys
  readonly cohorts: CompiledCohorts
  readonly sharedTests: SharedTests
  readonly problems: readonly DefinitionProblem[]
}

function assemble(definitions: ProjectDefinitions, parts: Parts): CompiledProject {
  const flags = parts.compiled
  const answered = parts.order.map(position => flags[position]!)
  const needs = unionOfNeeds(answered)
  const groupTypeNames: (string | undefined)[] = []
  for (const type of definitions.groupTypes) groupTypeNames[type.index] = type.name
  return {
    project: definitions.project,
    revision: definitions.revision,
    definitions,
    flags,
    positionOfKey: new Map(parts.order.map(position => [flags[position]!.key, position])),
    order: parts.order,
    dependencies: flags.map(flag => positionsOf(flag?.dependencyIds ?? [], parts)),
    missingDependency: parts.missing,
    hasDependencyCycle: parts.cyclic.size > 0,
    hasRuntimeFlags: answered.some(flag => flag.runtime !== 'all'),
    hasContextFlags: answered.some(flag => flag.contexts.length > 0),
    continuityFlagKeys: parts.active.filter(flag => flag.ensureExperienceContinuity).map(flag => flag.key),
    personKeys: parts.personKeys,
    cohorts: parts.cohorts,
    sharedTestCount: parts.sharedTests.count,
    groupTypeNames,
    needs,
    readsGeoip: parts.personKeys.readsGeoip(),
    problems: parts.problems,
  }
}

function positionsOf(ids: readonly number[], parts: Parts): number[] {
  const positions = ids.map(id => parts.positionOfId.get(id))
  return positions.filter(position => position !== undefined && position < parts.compiled.length) as number[]
}
