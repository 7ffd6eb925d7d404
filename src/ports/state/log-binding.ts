// What a state knows about the log it follows: which log, the worker's positions, and the outcomes of its records.

import type { LogStream } from '#core/events/log-stream.ts'
import type { ChunkOutcome } from './chunk-store.ts'

/** The log that a state follows, and what it knows of the previous one. */
export interface FollowedLog {
  readonly id: string
  /** Host and folder, for messages. */
  readonly place: string
  /** The previously followed log; null if there was none. */
  readonly formerId: string | null
  /** The positions when this log was bound, as JSON by stream. While they are unchanged, none of it was processed. */
  readonly begunAt: string
}

/** What a state that was unreachable reports when it is available again: it may be a copy from another time. */
export interface ReturnedState {
  readonly followedLogId: string
  /** The worker's positions, by log stream. */
  readonly positions: ReadonlyMap<string, number>
}

/** @throws PortError from every method, like `ManagementStore`. */
export interface LogBindingStore {
  /** The worker's position in a log stream; offset 0 if it never committed. */
  findLogPosition(stream: LogStream): Promise<{ offset: number; committedAtMs: number | null }>
  /** The log that the positions belong to; null if none was bound yet. */
  findFollowedLog(): Promise<FollowedLog | null>
  /**
   * Binds the current positions to this log. All streams then have no owner: a worker that still reads the former log
   * cannot commit after this, and holds no schedule (`schedule-owners.ts`).
   */
  followLog(log: FollowedLog): Promise<void>
  /** The outcomes of a project's records that have been processed so far. */
  listOutcomes(projectId: number): Promise<readonly ChunkOutcome[]>
  /**
   * How many records of each project were stored or deduplicated. When the number has grown, the project's usage has
   * changed.
   */
  sumChargedRecords(): Promise<readonly { readonly projectId: number; readonly recordCount: number }[]>
}
