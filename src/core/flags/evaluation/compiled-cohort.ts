// What a flag needs to know about a cohort: whether the subject is a member, and the data and time that this takes.
// `compile-cohorts.ts` compiles cohorts.

import type { Result } from '../../result.ts'
import type { CohortTree } from '../definitions/cohort-tree.ts'
import type { FilterTest } from './filter-test.ts'
import type { FlagNeeds } from './flag-needs.ts'
import type { UnknownReason } from './flag-outcome.ts'

export interface CompiledCohort {
  /** Whether the subject is a member. Call it only after every flag that the cohort depends on is decided. */
  readonly isMember: FilterTest
  /** True if some leaf is behavioural or realtime: membership is then only approximated, and the flag's reason says so. */
  readonly isApproximated: boolean
  /** Null when the cohort is static or describes nothing. A trace refers to its leaves. */
  readonly tree: CohortTree | null
  /** What the cohort and the cohorts that it refers to may read. */
  readonly needs: FlagNeeds
  /** How long the membership test may take, in units of one cheap flag; capped for very large cohorts. */
  readonly weight: number
}

export interface ReachedCohort {
  /** An err (a cycle, an unreadable tree, a cohort that does not exist) fails the flag that reaches the cohort. */
  readonly cohort: Result<CompiledCohort, UnknownReason>
  /**
   * Ids of the flags that are tested by the cohort's tree, or by the trees of the cohorts that it refers to, as far as
   * these can be read.
   */
  readonly dependencyIds: readonly number[]
}

export interface CompiledCohorts {
  /** @param problem called with problems to fix in cohorts that are reached for the first time. */
  reach(id: number, problem: (message: string) => void): ReachedCohort
}
