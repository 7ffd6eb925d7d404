// Who is in a cohort, and how many. A static cohort has rows; for any other, stored persons are put to the evaluator one
// after the other. Persons come in pages, and an evaluation gives the event loop back every few milliseconds.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { CohortProbe } from '#core/flags/evaluation/cohort-probe.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { CohortStore, PersonInCohorts } from '#ports/cohort-store.ts'
import type { PersonView } from '#ports/person-view.ts'
import type { Logger } from '#telemetry/log.ts'

export interface CohortPersonsDeps {
  readonly management: CohortStore
  /** What this front serves of a project; null when it knows no such project. */
  readonly servedProject: (projectId: number) => CompiledProject | null
  readonly clock: Clock
  readonly logger: Logger
  /** For tests: the clock of slices and of how long a list may look. */
  readonly monotonicNowMs?: () => number
}

export interface MemberPage<T> {
  readonly results: readonly T[]
  /** The next page begins behind this person's id; null when no person is left. */
  readonly nextAfter: number | null
}

const personsPerPage = 200
/** The event loop gets its turn after so long. */
const sliceMs = 10
/** A list that finds few members stops looking, and says where to go on. */
const lookMsMax = 1_000
/** Bounds the properties in one answer, as in any list of persons; one person alone may exceed it. */
const answeredCharsMax = 1024 * 1024

/**
 * Members with an id above `after`, ascending; a page of a dynamic cohort may be short, or empty, and still not the last.
 * @param encode what becomes of a member: called page by page, so that the turns between them share its cost.
 */
export async function listMembers<T>(
  deps: CohortPersonsDeps,
  cohort: Cohort,
  { after, limit }: { readonly after: number; readonly limit: number },
  encode: (person: PersonView) => T,
): Promise<Result<MemberPage<T>, UnknownReason>> {
  const { projectId, id: cohortId } = cohort
  if (cohort.isStatic) {
    const page = await deps.management.listCohortMembers(projectId, cohortId, { afterPersonId: after, limit })
    const nextAfter = page.hasMore ? (page.results.at(-1)?.id ?? after) : null
    return ok({ results: page.results.map(encode), nextAfter })
  }
  const nowMs = deps.monotonicNowMs ?? (() => performance.now())
  const endMs = nowMs() + lookMsMax
  const { isMember: test, staticCohortIds } = memberTest(deps, cohort)
  const results: T[] = []
  let answeredChars = 0
  for (let afterPersonId = after; ; ) {
    const page = await deps.management.listPersonsAfter(
      projectId,
      { afterPersonId, limit: personsPerPage },
      staticCohortIds,
    )
    for (const person of page.results) {
      const isFull = results.length > 0 && answeredChars + person.propertiesJson.length > answeredCharsMax
      if (isFull || results.length >= limit) return ok({ results, nextAfter: afterPersonId })
      const isMember = await test(person)
      if (!isMember.ok) return isMember
      if (isMember.value) {
        results.push(encode(person))
        answeredChars += person.propertiesJson.length
      }
      afterPersonId = person.id
    }
    if (!page.hasMore) return ok({ results, nextAfter: null })
    if (results.length >= limit || nowMs() >= endMs) return ok({ results, nextAfter: afterPersonId })
  }
}

export interface CohortCounter {
  /** This process is at it. */
  isCounting(cohortId: number): boolean
  /**
   * Counts the members and keeps the number with the cohort, unless the cohort changed meanwhile. Cohorts are counted one
   * after the other; one that is being counted, or waits for it, is not counted twice.
   * @returns err when the cohort cannot be evaluated. Rejects with a PortError.
   */
  count(cohort: Cohort): Promise<Result<null, UnknownReason | 'too_many'>>
}

/** Cohorts that wait to be counted. */
const waitingCountMax = 100

export function createCohortCounter(deps: CohortPersonsDeps): CohortCounter {
  const counting = new Map<number, Promise<Result<null, UnknownReason>>>()
  let last: Promise<unknown> = Promise.resolve()

  return {
    isCounting: cohortId => counting.has(cohortId),
    count(cohort) {
      const known = counting.get(cohort.id)
      if (known !== undefined) return known
      if (counting.size >= waitingCountMax) return Promise.resolve(err('too_many'))
      const result = last.then(() => countAndSave(deps, cohort)).finally(() => counting.delete(cohort.id))
      counting.set(cohort.id, result)
      // The caller may be gone by now.
      last = result.catch((error: unknown) => {
        deps.logger.warn({ err: error, cohortId: cohort.id }, 'the members of a cohort could not be counted')
      })
      return result
    },
  }
}

async function countAndSave(deps: CohortPersonsDeps, cohort: Cohort): Promise<Result<null, UnknownReason>> {
  const countedAtMs = deps.clock.nowMs()
  const count = cohort.isStatic
    ? ok(await deps.management.countCohortMembers(cohort.id))
    : await countDynamic(deps, cohort)
  if (!count.ok) return count
  await deps.management.saveCohortCount(cohort, count.value, countedAtMs)
  return ok(null)
}

async function countDynamic(deps: CohortPersonsDeps, cohort: Cohort): Promise<Result<number, UnknownReason>> {
  const { isMember: test, staticCohortIds } = memberTest(deps, cohort)
  let count = 0
  for (let afterPersonId = 0; ; ) {
    const page = await deps.management.listPersonsAfter(
      cohort.projectId,
      { afterPersonId, limit: personsPerPage },
      staticCohortIds,
    )
    for (const person of page.results) {
      const isMember = await test(person)
      if (!isMember.ok) return isMember
      if (isMember.value) count++
      afterPersonId = person.id
    }
    if (!page.hasMore) return ok(count)
  }
}

interface MemberTest {
  readonly isMember: (person: PersonInCohorts) => MaybePromise<Result<boolean, UnknownReason>>
  readonly staticCohortIds: readonly number[]
}

/** By the definitions as they are served now, and one moment for all persons. */
function memberTest(deps: CohortPersonsDeps, cohort: Cohort): MemberTest {
  const monotonicNowMs = deps.monotonicNowMs ?? (() => performance.now())
  const served = deps.servedProject(cohort.projectId)
  if (served === null) return { isMember: () => err('dependency_not_found_cohort'), staticCohortIds: [] }
  const probe = new CohortProbe(served.definitions, cohort.id)
  const nowMs = deps.clock.nowMs()
  let sliceEndMs = monotonicNowMs() + sliceMs
  const isTimeUp = () => monotonicNowMs() >= sliceEndMs
  const turn = () =>
    new Promise<void>(resolve => {
      setImmediate(() => {
        sliceEndMs = monotonicNowMs() + sliceMs
        resolve()
      })
    })
  const isMember = (person: PersonInCohorts) => {
    const evaluation = probe.evaluationOf(person, nowMs)
    const isDone = evaluation.advance(isTimeUp)
    if (isDone && !isTimeUp()) return probe.isMember(evaluation)
    return (async () => {
      await turn()
      while (!evaluation.advance(isTimeUp)) await turn()
      return probe.isMember(evaluation)
    })()
  }
  return { isMember, staticCohortIds: probe.staticCohortIds }
}
