// The activity log as the private API reads it. Every other method that takes a `Change` writes its entry itself.

import type { Activity, ActivityKind, NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'

/** All filters must match. */
export interface ActivityQuery {
  /** Null for the whole instance. */
  readonly projectId: number | null
  readonly kinds: readonly ActivityKind[]
  readonly itemId?: string
  /** Numbers of authors (`authorNumber`). */
  readonly by?: readonly number[]
  /** Only entries older than the one with this id. */
  readonly belowId?: number
  readonly limit: number
}

export interface ActivityStore {
  /** Records a change that is no write of the state. */
  recordActivity(activity: NewActivity, change: Change): Promise<void>
  /**
   * Newest first. A page is cut by bytes too, those of the flags' versions included, and a search ends after some
   * thousands of entries, also when few or none of them match.
   */
  listActivity(query: ActivityQuery): Promise<{
    readonly results: readonly Activity[]
    /** Below which the list continues; null at its end. */
    readonly nextBelowId: number | null
  }>
}
