// Finds persons that match a condition, to fill a page of a list. One search takes at most about a second, and searches in
// the same project wait for each other in a queue.

import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import { createSubjectOfPerson, type FlagProbe } from '#core/flags/evaluation/flag-probe.ts'
import { type MaybePromise, mapMaybePromise } from '#core/maybe-promise.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { PersonInCohorts, PersonsPage } from '#ports/state/cohort-store.ts'
import type { PersonView } from '#ports/state/person-store.ts'
import { finishEvaluation, type SubjectScans, subjectsPerPage } from './subject-scans.ts'

export interface FindPersonsDeps {
  readonly scans: SubjectScans
  /** The clock that measures how long a slice takes. */
  readonly monotonicNowMs: () => number
}

export interface FoundPersons<T> {
  readonly results: readonly T[]
  /** The search continues after the person with this id; null when no person remains. */
  readonly nextAfter: number | null
  /** How long the search itself took, without the time that it waited for other searches. */
  readonly lookedMs: number
}

export interface PersonSearch<T> {
  readonly projectId: number
  readonly test: PersonTest
  /**
   * Reads the persons after a given person, in the order of the list.
   * @returns a page of persons; its `nextAfter` is set only if reading does not continue after the page's last person.
   */
  readonly read: (
    after: number,
    limit: number,
  ) => Promise<PersonsPage<PersonInCohorts> & { readonly nextAfter?: number | null }>
  /**
   * Encodes a found person. It is called during the search, so that its cost is spread over turns of the event loop: the
   * next evaluation yields when the time is up.
   */
  readonly encode: (person: PersonView) => T
}

/** @returns err when the condition can never be evaluated. */
export type PersonTest = (person: PersonInCohorts) => MaybePromise<Result<boolean, UnknownReason>>

export function compilePersonTest(probe: FlagProbe, { slices }: SubjectScans, nowMs: number): PersonTest {
  return person => {
    const evaluation = probe.evaluationOf(createSubjectOfPerson([probe], person, nowMs))
    return mapMaybePromise(finishEvaluation(evaluation, slices), () => probe.holds(evaluation))
  }
}

/** A search that finds few stops after this time, and says where to continue. */
const lookMsMax = 1_000
/** Limits the size of the properties in one slice of a page, as in any list of persons; a single person may exceed it. */
const sliceCharsMax = 1024 * 1024

/** A slice of a page. Slices before the last one may be short or empty, too. @throws TooManyScansError */
export function findPersons<T>(
  deps: FindPersonsDeps,
  search: PersonSearch<T>,
  page: { readonly after: number; readonly limit: number },
  signal: AbortSignal,
): Promise<Result<FoundPersons<T>, UnknownReason>> {
  return deps.scans.searches.run(search.projectId, signal, () => fillPageSlice(deps, search, page, signal))
}

async function fillPageSlice<T>(
  { monotonicNowMs }: Pick<FindPersonsDeps, 'monotonicNowMs'>,
  { test, read, encode }: PersonSearch<T>,
  { after, limit }: { readonly after: number; readonly limit: number },
  signal: AbortSignal,
): Promise<Result<FoundPersons<T>, UnknownReason>> {
  const startMs = monotonicNowMs()
  const results: T[] = []
  const toPage = (nextAfter: number | null) => ok({ results, nextAfter, lookedMs: monotonicNowMs() - startMs })
  let foundChars = 0
  for (let last = after; ; ) {
    const page = await read(last, subjectsPerPage)
    signal.throwIfAborted()
    for (const person of page.results) {
      const isFull = results.length > 0 && foundChars + person.propertiesJson.length > sliceCharsMax
      if (isFull || results.length >= limit) return toPage(last)
      const holds = await test(person)
      if (!holds.ok) return err(holds.error)
      if (holds.value) {
        results.push(encode(person))
        foundChars += person.propertiesJson.length
      }
      last = person.id
    }
    if (!page.hasMore) return toPage(null)
    last = page.nextAfter ?? last
    if (results.length >= limit || monotonicNowMs() - startMs >= lookMsMax) return toPage(last)
  }
}
