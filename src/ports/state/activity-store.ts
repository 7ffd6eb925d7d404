// The activity log as the private API reads it. Methods of other stores that take a `Change` write its entry themselves.

import type { Activity, ActivityKind, NewActivity } from '#core/activity.ts'
import type { Change } from '#core/author.ts'

/** All filters must match. */
export interface ActivityQuery {
  /** Null for activity of the whole instance. */
  readonly projectId: number | null
  readonly kinds: readonly ActivityKind[]
  readonly itemId?: string
  /** Only entries by authors with these numbers (`computeAuthorNumber`). */
  readonly by?: readonly number[]
  /** Only entries older than the entry with this id. */
  readonly belowId?: number
  readonly limit: number
}

export interface ActivityStore {
  /** Records a change that is not a write to the state. */
  recordActivity(activity: NewActivity, change: Change): Promise<void>
  /**
   * Newest first. A page is also limited in bytes, including the bytes of the flags' versions, and a search ends after some
   * thousands of entries, even if few or none of them match.
   */
  listActivity(query: ActivityQuery): Promise<{
    readonly results: readonly Activity[]
    /** The list continues below this id; null at its end. */
    readonly nextBelowId: number | null
  }>
}
