// Cohorts as the private API reads and writes them, the members of static ones, and what definitions refer to each other.
// Every write is one transaction. Those of definitions bump the revision; memberships are read when they are asked for, so
// a change of members needs none.

import type { Cohort } from '#core/flags/definitions/cohort.ts'
import type { DefinitionLinks } from '#core/flags/definitions/definition-links.ts'
import type { MemberChange, MemberIds } from '#core/flags/evaluation/member-ids.ts'
import type { Result } from '#core/result.ts'
import type { PersonView } from './person-view.ts'
import type { Page, Written } from './written.ts'

export type NewCohort = Pick<
  Cohort,
  'projectId' | 'name' | 'description' | 'isStatic' | 'filters' | 'createdAtMs' | 'createdBy'
>
export type CohortPatch = Partial<Pick<Cohort, 'name' | 'description' | 'filters' | 'deleted'>> & {
  readonly updatedAtMs: number
}

/**
 * What a write of definitions relies on. With `linksRevision`, the one of `findLinks`, nothing is written when the
 * project's definitions have changed since: the answer is `definitions_changed`, and what was checked is to be checked
 * again. So of two writes that would close a cycle together one sees the other.
 */
export interface LinkedWrite {
  readonly linksRevision?: number
}

/** Ids of one call: a transaction writes no more rows than this. */
export const memberIdCountMax = 2_000

export interface CohortStore {
  createCohort(input: NewCohort, options: LinkedWrite): Promise<Result<Written<Cohort>, 'definitions_changed'>>
  /**
   * Applies the patch and adds 1 to the version; other filters make the count of members unknown. With `expectedVersion` that is not the current one nothing is written and
   * the current cohort comes back. A deleted cohort is `not_found` unless the patch says `deleted: false`.
   */
  updateCohort(
    projectId: number,
    cohortId: number,
    patch: CohortPatch,
    options: LinkedWrite & { readonly expectedVersion?: number },
  ): Promise<Result<Written<Cohort>, 'not_found' | 'definitions_changed' | { readonly staleVersion: Cohort }>>
  /** Deleted ones included. */
  findCohort(projectId: number, cohortId: number): Promise<Cohort | null>
  /** Without deleted ones, newest first; `search` looks in names, whatever their case. */
  listCohorts(projectId: number, query: { limit: number; offset: number; search?: string }): Promise<Page<Cohort>>
  /**
   * Which flags, cohorts and group types there are, without deleted ones, and what each refers to; at least as new as its
   * `revision`.
   */
  findLinks(projectId: number): Promise<DefinitionLinks>

  /** Adding a member again changes nothing. `not_static` also for one that is deleted or does not exist. */
  addCohortMembers(projectId: number, cohortId: number, members: MemberIds): Promise<Result<MemberChange, 'not_static'>>
  removeCohortMembers(
    projectId: number,
    cohortId: number,
    members: MemberIds,
  ): Promise<Result<MemberChange, 'not_static'>>
  /** Persons with an id above `afterPersonId`, ascending; fewer than `limit` when they are large, which `hasMore` tells. */
  listCohortMembers(projectId: number, cohortId: number, page: PersonsAfter): Promise<PersonsPage>
  /** All persons of a project in the same order. @param ofCohortIds which static cohorts are to be told of each. */
  listPersonsAfter(
    projectId: number,
    page: PersonsAfter,
    ofCohortIds: readonly number[],
  ): Promise<PersonsPage<PersonInCohorts>>
  /** Rows of a static cohort. */
  countCohortMembers(cohortId: number): Promise<number>
  /**
   * Neither a version nor a revision: nothing that is evaluated depends on it. Nothing is written for a version that is no
   * longer current: its filters may be others.
   */
  saveCohortCount(
    cohort: Pick<Cohort, 'projectId' | 'id' | 'version'>,
    count: number,
    countedAtMs: number,
  ): Promise<void>
}

export interface PersonsAfter {
  readonly afterPersonId: number
  readonly limit: number
}

export interface PersonInCohorts extends PersonView {
  readonly staticCohortIds: readonly number[]
}

export interface PersonsPage<T extends PersonView = PersonView> {
  readonly results: readonly T[]
  readonly hasMore: boolean
}
