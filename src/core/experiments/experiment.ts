// An experiment: a flag with variants, and why it runs. It is kept for the tools that manage it and marks its flag; results
// are not computed here.

import type { JsonObject } from '../json.ts'

export interface Experiment {
  /** Instance-wide, ascending from 1, never reused. */
  readonly id: number
  readonly projectId: number
  readonly name: string
  readonly flagId: number
  /** The flag was made for it; false: it was there before, and belongs to others, too. */
  readonly flagIsOwn: boolean
  /** `description`, `metrics`, `parameters` and the like, handed back as they are. */
  readonly content: JsonObject
  /** Null for a draft. */
  readonly startDateMs: number | null
  readonly endDateMs: number | null
  readonly archived: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly createdBy: string | null
}
