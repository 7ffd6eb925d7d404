// Events that were accepted but could not be stored, and which of them were replayed, that is, sent through capture
// again. The worker writes rejects with its other rows (`event-writer.ts`); they are stored for
// `PENNON_REJECT_RETENTION_DAYS`.

import type { Lane } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'

export interface RejectStore {
  /**
   * One page by the time of receipt. Pages neither skip nor repeat a reject while other rejects arrive.
   * @throws PortError like `EventQueries`.
   */
  listRejected(
    query: RejectedQuery,
    signal?: AbortSignal,
  ): Promise<{ rejected: readonly RejectedView[]; next: RejectedCursor | null }>
  /** @throws PortError like `EventQueries`. */
  countRejected(filter: RejectedFilter, signal?: AbortSignal): Promise<number>
  /**
   * Marks rejects as replayed; they stay in the store. A repeat changes nothing.
   * @throws PortError `unavailable` or `timeout`.
   */
  markReplayed(rejects: readonly ReplayedReject[]): Promise<void>
}

export interface RejectedView extends RejectedEvent {
  /** When the reject was last replayed and then stored as an event, epoch ms; null if this never happened. */
  readonly replayedAtMs: number | null
}

/** The place of one reject in the order of a list. */
export interface RejectedCursor {
  readonly receivedAtMs: number
  readonly rejectId: string
}

/** All given filters must match. */
export interface RejectedFilter {
  readonly projectId: number
  readonly ids?: readonly string[]
  readonly reason?: string
  /** Name of a field, with or without the index of its item before it (`batch.3.uuid`). */
  readonly field?: string
  readonly event?: string
  readonly distinctId?: string
  readonly uuid?: string
  readonly lane?: Lane
  /** Exclusive bounds of the time of receipt, epoch ms. */
  readonly afterMs?: number
  readonly beforeMs?: number
  /** A text that the body contains, ignoring case. */
  readonly search?: string
  readonly replayed?: boolean
  /** Newest first when absent. */
  readonly oldestFirst?: boolean
  /** Only rejects after this place in the list's order. */
  readonly beyond?: RejectedCursor
}

export interface RejectedQuery extends RejectedFilter {
  /** The most rejects of a page, 1–1,000. A page with large bodies has fewer. */
  readonly limit: number
}

export interface ReplayedReject extends RejectedCursor {
  readonly projectId: number
  readonly replayedAtMs: number
}
