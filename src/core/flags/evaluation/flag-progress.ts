// Where a flag whose evaluation ran out of time resumes.

import type { SetOffReason } from './prepared-outcomes.ts'

export interface FlagProgress {
  /** The set, or the rule, to resume with, and the index of its next test. */
  readonly setIndex: number
  readonly testIndex: number
  /** The highest-ranked reason of the sets before `setIndex`. */
  readonly bestReason: SetOffReason
  readonly bestIndex: number
  readonly groupsSkipped: boolean
}

export function createPausedProgress(setIndex: number, testIndex: number): FlagProgress {
  return { setIndex, testIndex, bestReason: 'no_group_type', bestIndex: -1, groupsSkipped: false }
}
