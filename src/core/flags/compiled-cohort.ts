// What a flag needs to know of a cohort: whether the subject is a member, and what finding out takes.
// Compiling cohorts is not done here; a project hands the evaluator those it has, by id.

import type { Result } from '../result.ts'
import type { FilterTest } from './filter-test.ts'
import type { UnknownReason } from './flag-outcome.ts'

export interface CompiledCohort {
  /** Whether the subject is a member; asked only after every flag of `dependencyIds` is decided. */
  readonly isMember: FilterTest
  /** Has a behavioural or realtime leaf, whose membership is only approximated: told in the reason. */
  readonly isApproximated: boolean
  /** Ids of the flags that its tree tests, those of the cohorts it refers to included. */
  readonly dependencyIds: readonly number[]
}

/** By cohort id; an err (a cycle, an unreadable tree) fails the flag that reaches it. An id that is not there is unknown. */
export type CompiledCohorts = ReadonlyMap<number, Result<CompiledCohort, UnknownReason>>

export const noCohorts: CompiledCohorts = new Map()
