// Looks through all persons of a project, or all groups of a type, and evaluates flags for each. What such scans cost
// others is bounded for the whole front: they share slices of the event loop, each holds one page in memory, and those
// of one project take turns.

import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { type FlagProbe, probedGroup, probedPerson } from '#core/flags/evaluation/flag-probe.ts'
import type { GroupType } from '#core/groups/group.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { ProjectQueue } from '#core/project-queue.ts'
import type { CohortMemberStore } from '#ports/state/cohort-store.ts'
import type { GroupStore } from '#ports/state/group-store.ts'
import type { PersonStore } from '#ports/state/person-store.ts'
import { createScanPace, type ScanPace } from './scan-pace.ts'

export interface SubjectScans {
  readonly pace: ScanPace
  /** Turns of counts, which look through everything. */
  readonly counts: ProjectQueue
  /** Turns of searches that fill a page, a second at most each. */
  readonly searches: ProjectQueue
}

/** Thrown when other scans of a project leave a scan no turn, or too few. */
export class TooManyScansError extends Error {}

/** Scans of a project that wait, of each kind; one runs. */
const waitingMax = 16

export function createSubjectScans(monotonicNowMs: () => number): SubjectScans {
  const full = () => new TooManyScansError('as many scans of this project wait as may')
  const turns = () => new ProjectQueue({ runningMax: 1, waitingMax }, full)
  return { pace: createScanPace({ monotonicNowMs }), counts: turns(), searches: turns() }
}

/** Works through an evaluation, with turns of the event loop in between when it takes long. */
export function finishEvaluation(evaluation: FlagEvaluation, pace: ScanPace): MaybePromise<void> {
  const isDone = evaluation.advance(pace.isTimeUp)
  return isDone && !pace.isTimeUp() ? undefined : goOn(evaluation, pace)
}

async function goOn(evaluation: FlagEvaluation, pace: ScanPace): Promise<void> {
  await pace.turn()
  while (!evaluation.advance(pace.isTimeUp)) await pace.turn()
}

/** Whom a flag decides for. */
export type Population = { readonly kind: 'persons' } | { readonly kind: 'groups'; readonly typeIndex: number }

/** A person or a group, for evaluations. */
export interface ScannedSubject {
  /** For the first distinct id of a person. Parses properties, which may take long. */
  readonly read: () => EvaluationSubject
  /** Further distinct ids of a person, of those that are shown. */
  readonly otherIds: readonly string[]
}

export interface ScanDeps {
  readonly management: Pick<CohortMemberStore, 'listPersonsAfter'> &
    Pick<GroupStore, 'listGroupsAfter' | 'countGroups'> &
    Pick<PersonStore, 'countPersons'>
}

/** How many persons or groups are read at once, unless they are large. */
export const subjectsPerPage = 200

/**
 * Everybody, page by page.
 * @param probes what will be evaluated for each of them.
 * @param groupTypes the types that exist; without the population's own there are no groups.
 */
export async function* scanSubjects(
  { management }: ScanDeps,
  projectId: number,
  population: Population,
  { probes, groupTypes, nowMs }: { probes: readonly FlagProbe[]; groupTypes: readonly GroupType[]; nowMs: number },
): AsyncGenerator<readonly ScannedSubject[]> {
  if (population.kind === 'groups') {
    const type = groupTypes.find(({ index }) => index === population.typeIndex)
    if (type === undefined) return
    for (let afterKey: string | null = null; ; ) {
      const after = afterKey === null ? {} : { afterKey }
      const page = await management.listGroupsAfter(projectId, {
        typeIndex: type.index,
        limit: subjectsPerPage,
        ...after,
      })
      yield page.results.map(group => ({ read: () => probedGroup(probes, group, type, nowMs), otherIds: [] }))
      if (!page.hasMore) return
      // Nobody is left of a page whose groups were deleted while it was read.
      afterKey = page.results.at(-1)?.key ?? afterKey
    }
  }
  const staticCohortIds = [...new Set(probes.flatMap(probe => probe.staticCohortIds))]
  for (let afterPersonId = 0; ; ) {
    const page = await management.listPersonsAfter(
      projectId,
      { afterPersonId, limit: subjectsPerPage },
      staticCohortIds,
    )
    yield page.results.map(person => ({
      read: () => probedPerson(probes, person, nowMs),
      otherIds: person.distinctIds.slice(1).map(({ distinctId }) => distinctId),
    }))
    if (!page.hasMore) return
    afterPersonId = page.results.at(-1)?.id ?? afterPersonId
  }
}

/** How many there are to look through. */
export function countSubjects({ management }: ScanDeps, projectId: number, population: Population): Promise<number> {
  return population.kind === 'persons'
    ? management.countPersons(projectId)
    : management.countGroups(projectId, population.typeIndex)
}
