// What a flag needs to know of a cohort: whether the subject is a member, and what finding out takes. Cohorts are compiled in
// `core/cohorts`; flags are handed this much of them.

import type { Result } from '../../result.ts'
import type { CohortTree } from '../definitions/cohort-tree.ts'
import type { FilterTest } from './filter-test.ts'
import type { FlagNeeds } from './flag-needs.ts'
import type { UnknownReason } from './flag-outcome.ts'

export interface CompiledCohort {
  /** Whether the subject is a member; asked only after every flag that it depends on is decided. */
  readonly isMember: FilterTest
  /** Has a behavioural or realtime leaf, whose membership is only approximated; the flag's reason says so. */
  readonly isApproximated: boolean
  /** Null when the cohort is static or describes nothing. A trace names its leaves. */
  readonly tree: CohortTree | null
  /** What it and the cohorts that it refers to may read. */
  readonly needs: FlagNeeds
  /** How long it may take, in units of one cheap flag; a very large one counts as less than it is. */
  readonly weight: number
}

export interface ReachedCohort {
  /** An err (a cycle, an unreadable tree, a cohort that does not exist) fails the flag that reaches it. */
  readonly cohort: Result<CompiledCohort, UnknownReason>
  /** Ids of the flags that its tree tests, those of the cohorts it refers to included, as far as they can be read. */
  readonly dependencyIds: readonly number[]
}

export interface CompiledCohorts {
  /** @param problem called with what a person should mend in the cohorts that are reached for the first time. */
  reach(id: number, problem: (message: string) => void): ReachedCohort
}
