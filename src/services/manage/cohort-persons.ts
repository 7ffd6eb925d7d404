// Lists and counts the members of a cohort, and tells which cohorts a person is in. A static cohort has rows; for any other, the evaluator tests stored persons
// one after the other. Persons are read in pages, and an evaluation yields to the event loop every few milliseconds.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import { CohortProbe } from '#core/flags/evaluation/cohort-probe.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { CohortMemberStore, CohortStore, PersonInCohorts } from '#ports/state/cohort-store.ts'
import type { PersonView } from '#ports/state/person-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { inSlices } from '../shared/in-slices.ts'

export interface CohortPersonsDeps {
  readonly management: Pick<CohortMemberStore, 'listCohortMembers' | 'listPersonsAfter' | 'countCohortMembers'> &
    Pick<CohortStore, 'saveCohortCount'>
  /** The project as this front serves it; null when the front does not know it. */
  readonly servedProject: (projectId: number) => CompiledProject | null
  readonly clock: Clock
  readonly logger: Logger
  /** The clock for slices and for how long a list may search. */
  readonly monotonicNowMs: () => number
}

export interface MemberPage<T> {
  readonly results: readonly T[]
  /** The next page begins after this person's id; null when no person is left. */
  readonly nextAfter: number | null
}

const personsPerPage = 200
/** How long an evaluation runs before the event loop gets a turn. */
const sliceMs = 10
/** A search that finds few members stops after this time, and says where to continue. */
const lookMsMax = 1_000
/** Limits the properties of one slice of a page, as in any list of persons; a single person may exceed it. */
const sliceCharsMax = 1024 * 1024

/**
 * Members with an id above `after`, ascending: a slice of a page, which may be short or empty before the last.
 * @param encode encodes one member. It is called during the search, so that its cost is spread over turns.
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
  const endMs = deps.monotonicNowMs() + lookMsMax
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
      const isFull = results.length > 0 && answeredChars + person.propertiesJson.length > sliceCharsMax
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
    if (results.length >= limit || deps.monotonicNowMs() >= endMs) return ok({ results, nextAfter: afterPersonId })
  }
}

/**
 * Those of the cohorts that a person is in, in the given order. Cohorts that cannot be evaluated have no members.
 * @param cohorts of the person's project, a few hundred.
 */
export async function listCohortsOf(
  deps: CohortPersonsDeps,
  { id: personId }: Pick<PersonView, 'id'>,
  cohorts: readonly Cohort[],
): Promise<readonly Cohort[]> {
  const [first] = cohorts
  if (first === undefined) return []
  const tests = await inSlices(memberTests(deps, cohorts))
  const staticIds = cohorts.flatMap((cohort, at) => (tests[at] === null ? [cohort.id] : tests[at]!.staticCohortIds))
  const { results } = await deps.management.listPersonsAfter(
    first.projectId,
    { afterPersonId: personId - 1, limit: 1 },
    [...new Set(staticIds)],
  )
  const person = results.find(({ id }) => id === personId)
  const found: Cohort[] = []
  if (person === undefined) return found
  for (const [at, cohort] of cohorts.entries()) {
    const isMember = (await tests[at]?.isMember(person)) ?? ok(person.staticCohortIds.includes(cohort.id))
    if (isMember.ok && isMember.value) found.push(cohort)
  }
  return found
}

/** A test of each cohort; null for a static one, whose members are rows. */
function* memberTests(
  deps: CohortPersonsDeps,
  cohorts: readonly Cohort[],
): Generator<undefined, (MemberTest | null)[]> {
  const tests: (MemberTest | null)[] = []
  for (const cohort of cohorts) {
    tests.push(cohort.isStatic ? null : memberTest(deps, cohort))
    yield
  }
  return tests
}

export interface CohortCounter {
  /** Whether this process is counting the cohort or has it waiting. */
  isCounting(cohortId: number): boolean
  /**
   * Counts the members and saves the number with the cohort, unless the cohort changed meanwhile. Cohorts are counted
   * one after the other; a cohort that is being counted or waits to be is not counted twice.
   * @returns err when the cohort cannot be evaluated. Rejects with a PortError.
   */
  count(cohort: Cohort): Promise<Result<null, UnknownReason | 'too_many'>>
}

/** How many cohorts may be counted or wait to be. */
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
      // The caller may no longer wait for the result.
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

/** Tests by the definitions that are served now, at one moment for all persons. */
function memberTest(deps: CohortPersonsDeps, cohort: Cohort): MemberTest {
  const { monotonicNowMs } = deps
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
