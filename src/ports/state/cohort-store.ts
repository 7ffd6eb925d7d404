// Cohorts as the private API reads and writes them, and the members of static cohorts. Evaluations read cohorts from
// `definition-store.ts` and memberships from `subject-store.ts`.

import type { Change } from '#core/author.ts'
import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { MemberChange, MemberIds } from '#core/flags/evaluation/member-ids.ts'
import type { Result } from '#core/result.ts'
import type { LinkedWrite } from './flag-store.ts'
import type { PersonFilters, PersonView } from './person-store.ts'
import type { Page, Written } from './written.ts'

export type NewCohort = Pick<Cohort, 'projectId' | 'name' | 'description' | 'isStatic' | 'filters'>
export type CohortPatch = Partial<Pick<Cohort, 'name' | 'description' | 'filters' | 'deleted'>>

/** Every write raises the revision except `saveCohortCount`, on which no evaluation depends. */
export interface CohortStore {
  createCohort(
    input: NewCohort,
    change: Change,
    options: LinkedWrite,
  ): Promise<Result<Written<Cohort>, 'definitions_changed'>>
  /**
   * Applies the patch and adds 1 to the version, unless it changes nothing; new filters make the count of members
   * unknown. If `expectedVersion` is not the current version, nothing is written and the current cohort is returned. A
   * deleted cohort is `not_found` unless the patch has `deleted: false`.
   */
  updateCohort(
    projectId: number,
    cohortId: number,
    patch: CohortPatch,
    change: Change,
    options: LinkedWrite & { readonly expectedVersion?: number },
  ): Promise<Result<Written<Cohort>, 'not_found' | 'definitions_changed' | { readonly staleVersion: Cohort }>>
  /** Deleted cohorts included. */
  findCohort(projectId: number, cohortId: number): Promise<Cohort | null>
  /** Newest first, without deleted cohorts; `search` matches names, ignoring case. */
  listCohorts(projectId: number, query: { limit: number; offset: number; search?: string }): Promise<Page<Cohort>>
  /**
   * Stores the count without a new version or revision. Writes nothing for an outdated version, which may have had other
   * filters.
   */
  saveCohortCount(
    cohort: Pick<Cohort, 'projectId' | 'id' | 'version'>,
    count: number,
    countedAtMs: number,
  ): Promise<void>
}

/** How many ids a call of `addCohortMembers` or `removeCohortMembers` may have. It limits the rows of a transaction. */
export const memberIdCountMax = 2_000

/** Members of static cohorts. Evaluations read memberships when they need them, so a change raises no revision. */
export interface CohortMemberStore {
  /** Adding a member again changes nothing. `not_static` also means that the cohort is deleted or does not exist. */
  addCohortMembers(
    projectId: number,
    cohortId: number,
    members: MemberIds,
    change: Change,
  ): Promise<Result<MemberChange, 'not_static'>>
  removeCohortMembers(
    projectId: number,
    cohortId: number,
    members: MemberIds,
    change: Change,
  ): Promise<Result<MemberChange, 'not_static'>>
  /** Persons with an id above `afterPersonId`, ascending. Large persons make a page short: see `hasMore`. */
  listCohortMembers(projectId: number, cohortId: number, page: PersonsPageQuery): Promise<PersonsPage>
  /**
   * All persons of a project by ascending id, or only those that `propertyParts` does not exclude. With `propertyParts`, a
   * page before the last may be empty.
   * @param ofCohortIds static cohorts to report in `staticCohortIds`.
   */
  listPersonsAfter(
    projectId: number,
    page: PersonsPageQuery & Pick<PersonFilters, 'propertyParts'>,
    ofCohortIds: readonly number[],
  ): Promise<ScannedPersons>
  /**
   * Persons that match the filters, newest first, with an id below `belowId`. Pages and cohorts are as in
   * `listPersonsAfter`: with `propertyParts` or `search` a page before the last may be empty.
   */
  listPersonsBelow(
    projectId: number,
    page: PersonFilters & { readonly belowId?: number; readonly limit: number },
    ofCohortIds: readonly number[],
  ): Promise<SearchedPersons>
  /** The uuids of a static cohort's members, at most `limit` of them. */
  listCohortMemberUuids(projectId: number, cohortId: number, limit: number): Promise<readonly string[]>
  /** How many rows a static cohort has. */
  countCohortMembers(cohortId: number): Promise<number>
}

export interface PersonsPageQuery {
  readonly afterPersonId: number
  readonly limit: number
}

export interface PersonInCohorts extends PersonView {
  readonly staticCohortIds: readonly number[]
}

export interface SearchedPersons extends PersonsPage<PersonInCohorts> {
  /** The next page begins after this person; null when there is no next page. */
  readonly continueAfterId: number | null
}

export interface ScannedPersons extends SearchedPersons {
  /** How many persons before the start of the next page are left out because they do not match. */
  readonly leftOutCount: number
}

export interface PersonsPage<T extends PersonView = PersonView> {
  readonly results: readonly T[]
  readonly hasMore: boolean
}
