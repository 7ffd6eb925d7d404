// An experiment: a flag with variants, and why it runs. It is stored for the tools that manage it, and it marks its
// flag. The server does not compute results.

import type { Author } from '../author.ts'
import type { JsonObject } from '../json.ts'

export interface Experiment {
  /** Instance-wide, ascending from 1, never reused. */
  readonly id: number
  readonly projectId: number
  readonly name: string
  readonly flagId: number
  /** True when the flag was made for the experiment; false when it existed before and may have other uses. */
  readonly flagIsOwn: boolean
  /** `description`, `metrics`, `parameters` and the like, returned as they were sent. */
  readonly content: JsonObject
  /** Null for a draft. */
  readonly startDateMs: number | null
  readonly endDateMs: number | null
  readonly archived: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly createdBy: Author | null
}
