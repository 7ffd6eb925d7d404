// The activity log as the private API reads it. Every other method that takes a `Change` writes its entry itself.

import type { Activity, ActivityKind, NewActivity } from '#core/activity.ts'
import type { Author, Change } from '#core/author.ts'

/** All filters must match. */
export interface ActivityQuery {
  /** Null for the whole instance. */
  readonly projectId: number | null
  readonly kinds: readonly ActivityKind[]
  readonly itemId?: string
  readonly by?: readonly Author[]
  /** Only entries older than the one with this id. */
  readonly belowId?: number
  readonly limit: number
}

export interface ActivityStore {
  /** Records a change that is no write of the state. */
  recordActivity(activity: NewActivity, change: Change): Promise<void>
  /** Newest first. A page is cut by bytes too, those of the flags' versions included. */
  listActivity(query: ActivityQuery): Promise<{ readonly results: readonly Activity[]; readonly hasMore: boolean }>
  /** Everyone who changed something in a project, or in the instance, in any order. */
  listActivityAuthors(projectId: number | null): Promise<readonly Author[]>
}
