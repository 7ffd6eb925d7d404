// A survey: the questions that a browser shows, and its audience. The server stores it and serves it; the SDK decides
// whether to show it, using the flags named here. Source: docs/wire/evaluation.md 7.5.

import type { Author } from '../author.ts'
import type { JsonObject } from '../json.ts'

/** A draft has not started, a complete one has ended. */
export const surveyStatuses = ['draft', 'running', 'complete'] as const
export type SurveyStatus = (typeof surveyStatuses)[number]

export interface Survey {
  /** UUID. */
  readonly id: string
  readonly projectId: number
  readonly name: string
  readonly type: string
  /** `description`, `questions`, `conditions`, `appearance`, `schedule` and the like, sent to clients unchanged. */
  readonly content: JsonObject
  readonly linkedFlagId: number | null
  /** Made for the survey from its own filters; deleted with it. */
  readonly targetingFlagId: number | null
  readonly internalTargetingFlagId: number | null
  readonly startDateMs: number | null
  readonly endDateMs: number | null
  readonly archived: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly createdBy: Author | null
}
