// Lists and counts the members of a cohort, and finds the cohorts that a person is in. A static cohort has a row for each
// member; for any other cohort, the evaluator tests stored persons one after the other.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import {
  createConditionProbe,
  type DefinitionsById,
  type FlagProbe,
  indexDefinitionsById,
} from '#core/flags/evaluation/flag-probe.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { CohortMemberStore, CohortStore } from '#ports/state/cohort-store.ts'
import type { PersonView } from '#ports/state/person-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { countMatchingSubjects } from './count-reach.ts'
import { compilePersonTest, type FindPersonsDeps, type FoundPersons, findPersons } from './find-persons.ts'
import { runScanStep, type ScanDeps } from './subject-scans.ts'

export interface CohortPersonsDeps extends FindPersonsDeps {
  readonly management: Pick<CohortMemberStore, 'listCohortMembers' | 'countCohortMembers'> &
    Pick<CohortStore, 'saveCohortCount'> &
    ScanDeps['management']
  /** The project as this front serves it; null when the front does not know it. */
  readonly servedProject: (projectId: number) => CompiledProject | null
  readonly clock: Clock
  readonly logger: Logger
}

/** Why a cohort has no members to show; `not_served` while this front does not know its project. */
export type NoMembers = UnknownReason | 'not_served'

/**
 * Members with an id above `after`, ascending: a slice of a page. Slices before the last one may be short or empty, too.
 * @param encode encodes one member.
 * @throws TooManyScansError
 */
export async function listMembersOfCohort<T>(
  deps: CohortPersonsDeps,
  cohort: Cohort,
  { after, limit }: { readonly after: number; readonly limit: number },
  encode: (person: PersonView) => T,
  signal: AbortSignal,
): Promise<Result<FoundPersons<T>, NoMembers>> {
  const { projectId, id: cohortId } = cohort
  if (cohort.isStatic) {
    const page = await deps.management.listCohortMembers(projectId, cohortId, { afterPersonId: after, limit })
    const nextAfter = page.hasMore ? (page.results.at(-1)?.id ?? after) : null
    return ok({ results: page.results.map(encode), nextAfter, lookedMs: 0 })
  }
  const served = deps.servedProject(projectId)
  if (served === null) return err('not_served')
  const probe = createMemberProbe(served, cohortId)
  const test = compilePersonTest(probe, deps.scans, deps.clock.nowMs())
  const propertyParts = probe.neededParts()
  const read = async (afterPersonId: number, count: number) => {
    const asked = { afterPersonId, limit: count, propertyParts }
    const page = await deps.management.listPersonsAfter(projectId, asked, probe.staticCohortIds)
    return { ...page, nextAfter: page.continueAfterId }
  }
  return findPersons(deps, { projectId, test, read, encode }, { after, limit }, signal)
}

/**
 * Those of the given cohorts that a person is in, in the given order. Cohorts that cannot be evaluated have no members. The
 * call waits in the queue of the project's searches.
 * @param cohorts a few hundred cohorts of the person's project.
 * @throws TooManyScansError
 */
export function listCohortsOfPerson(
  deps: CohortPersonsDeps,
  projectId: number,
  { id: personId }: Pick<PersonView, 'id'>,
  cohorts: readonly Cohort[],
  signal: AbortSignal,
): Promise<Result<readonly Cohort[], 'not_served'>> {
  const { slices, searches } = deps.scans
  return searches.run(projectId, signal, async () => {
    const served = deps.servedProject(projectId)
    if (served === null) return err('not_served')
    const probes = new Map<Cohort, FlagProbe>()
    const byId = indexDefinitionsById(served.definitions)
    for (const cohort of cohorts) {
      if (cohort.isStatic) continue
      await runScanStep(slices, () => {
        probes.set(cohort, createMemberProbe(served, cohort.id, byId))
        return true
      })
      signal.throwIfAborted()
    }
    const staticIds = cohorts.flatMap(cohort => probes.get(cohort)?.staticCohortIds ?? cohort.id)
    const { results } = await deps.management.listPersonsAfter(projectId, { afterPersonId: personId - 1, limit: 1 }, [
      ...new Set(staticIds),
    ])
    const person = results.find(({ id }) => id === personId)
    const found: Cohort[] = []
    if (person === undefined) return ok(found)
    const nowMs = deps.clock.nowMs()
    for (const cohort of cohorts) {
      const probe = probes.get(cohort)
      const isMember =
        probe === undefined
          ? ok(person.staticCohortIds.includes(cohort.id))
          : await compilePersonTest(probe, deps.scans, nowMs)(person)
      if (isMember.ok && isMember.value) found.push(cohort)
      signal.throwIfAborted()
    }
    return ok(found)
  })
}

/** How many cohorts may be counted or queued. */
const waitingCountMax = 100

export type CohortCounter = ReturnType<typeof createCohortCounter>

export function createCohortCounter(deps: CohortPersonsDeps) {
  const counting = new Map<number, Promise<Result<null, NoMembers>>>()
  let last: Promise<unknown> = Promise.resolve()

  return {
    /** Whether this process is counting the cohort or has queued it. */
    isCounting: (cohortId: number) => counting.has(cohortId),
    /**
     * Counts the members and saves the number with the cohort, unless the cohort changed during the count. Cohorts are
     * counted one after the other; a cohort that is being counted or queued is not counted twice.
     * @returns err when the cohort cannot be evaluated. Rejects with a PortError.
     */
    count(cohort: Cohort): Promise<Result<null, NoMembers | 'too_many'>> {
      const known = counting.get(cohort.id)
      if (known !== undefined) return known
      if (counting.size >= waitingCountMax) return Promise.resolve(err('too_many'))
      const result = last.then(() => countAndSave(deps, cohort)).finally(() => counting.delete(cohort.id))
      counting.set(cohort.id, result)
      // Errors are handled here, since the caller may no longer wait for the result.
      last = result.catch((error: unknown) => {
        deps.logger.warn({ err: error, cohortId: cohort.id }, 'cannot count the members of a cohort')
      })
      return result
    },
  }
}

async function countAndSave(deps: CohortPersonsDeps, cohort: Cohort): Promise<Result<null, NoMembers>> {
  const countedAtMs = deps.clock.nowMs()
  const count = cohort.isStatic
    ? ok(await deps.management.countCohortMembers(cohort.id))
    : await countDynamic(deps, cohort)
  if (!count.ok) return count
  await deps.management.saveCohortCount(cohort, count.value, countedAtMs)
  return ok(null)
}

async function countDynamic(deps: CohortPersonsDeps, { projectId, id }: Cohort): Promise<Result<number, NoMembers>> {
  const served = deps.servedProject(projectId)
  if (served === null) return err('not_served')
  const members = { probe: createMemberProbe(served, id), population: { kind: 'persons' } } as const
  // Never aborted: the count is saved even if the caller no longer waits for it.
  const watch = { nowMs: deps.clock.nowMs(), signal: new AbortController().signal }
  const counted = await countMatchingSubjects(deps, served.definitions, members, watch)
  return counted.ok ? ok(counted.value.holding) : counted
}

function createMemberProbe({ definitions }: CompiledProject, cohortId: number, byId?: DefinitionsById): FlagProbe {
  return createConditionProbe(definitions, [{ key: 'id', type: 'cohort', value: cohortId }], null, byId)
}
