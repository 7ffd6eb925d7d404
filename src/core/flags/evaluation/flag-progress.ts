// Where a flag whose evaluation ran out of time resumes.

import type { SetOffReason } from './prepared-outcomes.ts'

export interface FlagProgress {
  /** The set to resume with, and the test of that set. */
  readonly setIndex: number
  readonly testIndex: number
  /** The result of the sets before it. */
  readonly bestReason: SetOffReason
  readonly bestIndex: number
  readonly groupsSkipped: boolean
}
