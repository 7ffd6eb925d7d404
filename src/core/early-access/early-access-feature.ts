// A feature that people can try before it is for everybody: their choice is the person property
// `$feature_enrollment/<flag key>`, which decides its flag. Source: docs/wire/evaluation.md 5.7, 7.4.

import type { JsonObject } from '../json.ts'

export const earlyAccessStages = ['draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived'] as const
export type EarlyAccessStage = (typeof earlyAccessStages)[number]

export interface EarlyAccessFeature {
  /** UUID. */
  readonly id: string
  readonly projectId: number
  readonly flagId: number | null
  /** The flag was made for it; false: it was there before, and belongs to others, too. */
  readonly flagIsOwn: boolean
  readonly name: string
  readonly description: string
  readonly stage: EarlyAccessStage
  /** '' when there is none. */
  readonly documentationUrl: string
  readonly payload: JsonObject
  readonly createdAtMs: number
}
