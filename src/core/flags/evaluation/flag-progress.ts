// Where a flag whose evaluation ran out of time resumes.

import type { SetOffReason } from './prepared-outcomes.ts'

export interface FlagProgress {
  /** The set to go on with, and the test of that set. */
  readonly setIndex: number
  readonly testIndex: number
  /** What the sets before it came to. */
  readonly bestReason: SetOffReason
  readonly bestIndex: number
  readonly groupsSkipped: boolean
}
