// A feature that people can try before its general release. Their choice is the person property
// `$feature_enrollment/<flag key>`, which decides its flag. Source: docs/wire/evaluation.md 5.7, 7.4.

import type { Author } from '../author.ts'
import type { JsonObject } from '../json.ts'

export const earlyAccessStages = ['draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived'] as const
export type EarlyAccessStage = (typeof earlyAccessStages)[number]

export interface EarlyAccessFeature {
  /** UUID. */
  readonly id: string
  readonly projectId: number
  readonly flagId: number | null
  /** True when the flag was made for the feature; false when it existed before and may have other uses. */
  readonly flagIsOwn: boolean
  readonly name: string
  readonly description: string
  readonly stage: EarlyAccessStage
  /** '' when not set. */
  readonly documentationUrl: string
  readonly payload: JsonObject
  readonly createdAtMs: number
  readonly createdBy: Author | null
}
