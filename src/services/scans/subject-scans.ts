// Scans all persons of a project, or all groups of a type, and evaluates flags for each. The cost of such scans to other
// requests is bounded for the whole front: they share slices of the event loop, each scan holds one page in memory, and the
// scans of one project queue.

import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { createSubjectOfGroup, createSubjectOfPerson, type FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import { mergeNeededParts } from '#core/flags/evaluation/needed-parts.ts'
import type { GroupType } from '#core/groups/group.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { ProjectQueue } from '#core/project-queue.ts'
import type { CohortMemberStore, ScannedPersons } from '#ports/state/cohort-store.ts'
import type { GroupStore } from '#ports/state/group-store.ts'
import type { PersonStore } from '#ports/state/person-store.ts'
import { createSliceQueue, type SliceQueue, unfinished } from '../shared/slice-queue.ts'

export type SubjectScans = ReturnType<typeof createSubjectScanQueues>

/** Thrown when too many scans of a project are queued. */
export class TooManyScansError extends Error {}

const sliceMs = 10
/** The maximum number of scans of each kind that may wait per project while one runs. */
const waitingMax = 16

export function createSubjectScanQueues(monotonicNowMs: () => number) {
  const createTooManyScansError = () => new TooManyScansError('too many scans of this project are queued')
  const createQueue = () => new ProjectQueue({ runningMax: 1, waitingMax }, createTooManyScansError)
  return {
    slices: createSliceQueue({ sliceMs, monotonicNowMs }),
    /** The queue of counts, which scan everything. */
    counts: createQueue(),
    /** The queue of searches that fill a page, each for a second at most. */
    searches: createQueue(),
  }
}

/**
 * Calls `piece`, a step of a scan, until it returns true (done), and yields to the event loop in between when that takes
 * long. When the slice of the current turn of the event loop is already used up, the step begins in a later turn.
 */
export function runScanStep(slices: SliceQueue, piece: (isTimeUp: () => boolean) => boolean): MaybePromise<unknown> {
  let isArriving = true
  return slices.run(isTimeUp => {
    if (isArriving) {
      isArriving = false
      if (isTimeUp()) return unfinished
    }
    return piece(isTimeUp) ? undefined : unfinished
  })
}

/** Completes an evaluation as one step of a scan, in its slices of time. */
export function finishEvaluation(evaluation: FlagEvaluation, slices: SliceQueue): MaybePromise<unknown> {
  return runScanStep(slices, isTimeUp => evaluation.advance(isTimeUp))
}

/** The subjects that a flag decides for. */
export type Population = { readonly kind: 'persons' } | { readonly kind: 'groups'; readonly typeIndex: number }

/** A person or a group, for evaluations. */
export interface ScannedSubject {
  /** The subject to evaluate, for a person with its first distinct id. Parses properties, which may take long. */
  readonly read: () => EvaluationSubject
  /** The person's further distinct ids, as far as they are shown with the person. */
  readonly otherIds: readonly string[]
}

export interface ScanDeps {
  readonly management: Pick<CohortMemberStore, 'listPersonsAfter'> &
    Pick<GroupStore, 'listGroupsAfter' | 'countGroups'> &
    Pick<PersonStore, 'countPersons'>
}

/** How many persons or groups are read at once, unless they are large. */
export const subjectsPerPage = 200

export interface ScannedPage {
  readonly subjects: readonly ScannedSubject[]
  /** How many further subjects the page has for which every probe is off. */
  readonly offCount: number
}

/**
 * All subjects, page by page.
 * @param probes evaluated for each of them.
 * @param groupTypes the types that exist; if the population's own type is not among them, there are no groups.
 */
export async function* scanSubjects(
  { management }: ScanDeps,
  projectId: number,
  population: Population,
  { probes, groupTypes, nowMs }: { probes: readonly FlagProbe[]; groupTypes: readonly GroupType[]; nowMs: number },
): AsyncGenerator<ScannedPage> {
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
      const subjects = page.results.map(group => ({
        read: () => createSubjectOfGroup(probes, group, type, nowMs),
        otherIds: [],
      }))
      yield { subjects, offCount: 0 }
      if (!page.hasMore) return
      // `results` is empty when all groups of a page were deleted while the page was read.
      afterKey = page.results.at(-1)?.key ?? afterKey
    }
  }
  const staticCohortIds = [...new Set(probes.flatMap(probe => probe.staticCohortIds))]
  const propertyParts = probes.every(probe => probe.isAlwaysKnown())
    ? mergeNeededParts(probes.map(probe => probe.neededParts()))
    : []
  let isNarrowed = propertyParts.length > 0
  for (let afterPersonId: number | null = 0; afterPersonId !== null; ) {
    const { results, continueAfterId, leftOutCount }: ScannedPersons = await management.listPersonsAfter(
      projectId,
      { afterPersonId, limit: subjectsPerPage, propertyParts: isNarrowed ? propertyParts : [] },
      staticCohortIds,
    )
    const subjects = results.map(person => ({
      read: () => createSubjectOfPerson(probes, person, nowMs),
      otherIds: person.distinctIds.slice(1).map(({ distinctId }) => distinctId),
    }))
    yield { subjects, offCount: leftOutCount }
    // When the check of the property texts leaves out few subjects, it costs more than it saves.
    isNarrowed &&= leftOutCount >= results.length
    afterPersonId = continueAfterId
  }
}

/** How many subjects there are to scan. */
export function countSubjects({ management }: ScanDeps, projectId: number, population: Population): Promise<number> {
  return population.kind === 'persons'
    ? management.countPersons(projectId)
    : management.countGroups(projectId, population.typeIndex)
}
