// Counts, among all persons or groups, how many match a flag's condition, or which values a flag draft gives compared with
// the version that it would replace. Each subject is evaluated as for a request that sends no properties.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import type { FlagOutcome, UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import { FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import { type ReachCounts, ReachTally, readReachedValue } from '#core/flags/evaluation/reach-tally.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  countSubjects,
  finishEvaluation,
  type Population,
  type ScanDeps,
  type SubjectScans,
  scanSubjects,
} from './subject-scans.ts'

export type CountReachDeps = ScanDeps & { readonly scans: SubjectScans }

/** The time for which a scan evaluates conditions, and the signal that ends the scan. */
export interface ScanWatch {
  readonly nowMs: number
  readonly signal: AbortSignal
}

/** How many subjects match a condition. @returns err when the condition cannot be evaluated for any subject. */
export async function countMatchingSubjects(
  deps: CountReachDeps,
  definitions: ProjectDefinitions,
  { probe, population }: { readonly probe: FlagProbe; readonly population: Population },
  { nowMs, signal }: ScanWatch,
): Promise<Result<{ readonly holding: number; readonly all: number }, UnknownReason>> {
  let holding = 0
  let all = 0
  const { groupTypes, project } = definitions
  for await (const page of scanSubjects(deps, project.id, population, { probes: [probe], groupTypes, nowMs })) {
    signal.throwIfAborted()
    all += page.offCount
    for (const subject of page.subjects) {
      const evaluation = probe.evaluationOf(subject.read())
      await finishEvaluation(evaluation, deps.scans.slices)
      const holds = probe.holds(evaluation)
      if (!holds.ok) return holds
      all++
      if (holds.value) holding++
    }
  }
  return ok({ holding, all })
}

/** Two versions of a flag to be compared; null for a version that is off for every subject. */
export interface ReachQuery {
  readonly population: Population
  readonly before: FlagProbe | null
  readonly after: FlagProbe | null
}

export type ReachRefusal = 'unreadable' | 'by_device' | 'mixed' | 'other_population'

/**
 * @param before the version that is replaced, null when there is none.
 * @returns err when both versions cannot be counted together from stored data.
 */
export function prepareReachQuery(
  definitions: ProjectDefinitions,
  before: Flag | null,
  after: Flag,
): Result<ReachQuery, ReachRefusal> {
  const probes = { before: createProbeOrNull(definitions, before), after: createProbeOrNull(definitions, after) }
  if (probes.after !== null && probes.after.flag === undefined) return err('unreadable')
  const populations: Population[] = []
  for (const probe of [probes.after, probes.before]) {
    const population = probe === null ? ok(null) : findProbePopulation(probe)
    if (!population.ok) return population
    if (population.value !== null) populations.push(population.value)
  }
  const [population = { kind: 'persons' }, other = population] = populations
  return isSamePopulation(population, other) ? ok({ population, ...probes }) : err('other_population')
}

/** Null for a flag that is never in the answer to a request. */
function createProbeOrNull(definitions: ProjectDefinitions, flag: Flag | null): FlagProbe | null {
  if (flag === null || !flag.active || flag.deleted || flag.hasEncryptedPayloads) return null
  return new FlagProbe(definitions, flag)
}

/**
 * The subjects that a flag decides for; null for an unreadable flag and one without condition sets.
 * @returns err when its values cannot be computed from stored data.
 */
export function findProbePopulation(probe: FlagProbe): Result<Population | null, ReachRefusal> {
  const { flag } = probe
  if (flag !== undefined && flag.rules !== null) return ok({ kind: 'persons' })
  if (flag === undefined || flag.sets.length === 0) return ok(null)
  const [typeIndex = null, ...others] = new Set(flag.sets.map(set => set.groupTypeIndex))
  if (others.length > 0) return err('mixed')
  // A group has no person, so no ids or properties of a person can be read.
  if (typeIndex !== null) return probe.isForGroupsAlone(typeIndex) ? ok({ kind: 'groups', typeIndex }) : err('mixed')
  return probe.isByDevice() ? err('by_device') : ok({ kind: 'persons' })
}

function isSamePopulation(a: Population, b: Population): boolean {
  return a.kind === 'groups' && b.kind === 'groups' ? a.typeIndex === b.typeIndex : a.kind === b.kind
}

const off: FlagOutcome = { kind: 'off', reason: 'no_condition_match', conditionIndex: null, payload: undefined }

/** @param onPage called and awaited after each page; an error that it throws ends the count. */
export async function countAffectedSubjects(
  deps: CountReachDeps,
  definitions: ProjectDefinitions,
  { population, before, after }: ReachQuery,
  { nowMs, signal, onPage }: ScanWatch & { readonly onPage: (counts: () => ReachCounts) => Promise<void> },
): Promise<ReachCounts> {
  const tally = new ReachTally(after?.conditionCount() ?? 0)
  const probes = [before, after].filter(probe => probe !== null)
  const { groupTypes, project } = definitions
  if (probes.length === 0) {
    tally.addOff(await countSubjects(deps, project.id, population))
    return tally.counts()
  }
  for await (const page of scanSubjects(deps, project.id, population, { probes, groupTypes, nowMs })) {
    signal.throwIfAborted()
    tally.addOff(page.offCount)
    for (const { read, otherIds } of page.subjects) {
      const subject = read()
      const valueBefore = await evaluate(before, subject)
      const valueAfter = await evaluate(after, subject)
      tally.add(valueBefore, valueAfter, await isSplitAcrossIds(valueAfter, subject, otherIds))
    }
    await onPage(() => tally.counts())
  }
  return tally.counts()

  async function evaluate(probe: FlagProbe | null, subject: EvaluationSubject): Promise<FlagOutcome | null> {
    if (probe === null) return off
    const evaluation = probe.evaluationOf(subject)
    await finishEvaluation(evaluation, deps.scans.slices)
    return probe.outcomeOf(evaluation)
  }

  async function isSplitAcrossIds(
    ofFirst: FlagOutcome | null,
    subject: EvaluationSubject,
    otherIds: readonly string[],
  ): Promise<boolean> {
    if (after?.readsDistinctId !== true) return false
    const value = readReachedValue(ofFirst)
    for (const distinctId of otherIds)
      if (readReachedValue(await evaluate(after, { ...subject, distinctId })) !== value) return true
    return false
  }
}
