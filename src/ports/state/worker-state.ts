// What workers store in the state for their own use: the log that they follow and their positions in it, the event store
// that they last wrote to, who runs a schedule, and the projects that wait for a second cursor.

import type { LogStream } from '#core/events/log-stream.ts'
import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { EventStoreMark } from '#core/processing/row-ranges.ts'
import type { TrustedTime } from '#core/trusted-time.ts'
import type { ChunkOutcome } from './chunk-store.ts'

/** The log that a state follows, and what the state knows of the previous log. */
export interface FollowedLog {
  readonly id: string
  /** Host and folder, for messages. */
  readonly place: string
  /** The previously followed log; null if there was none. */
  readonly formerId: string | null
  /**
   * The positions when this log was bound, as JSON by stream. While they are unchanged, nothing of this log was processed.
   */
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
   * cannot commit after this, and holds no schedule (`ScheduleOwners`).
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

// What the state remembers about the event store, so that a worker notices when the event store was lost or replaced
// (docs/decisions/0026).

export interface EventStoreMarks {
  /** Null until a worker has checked the event store. */
  findEventStoreMark(): Promise<EventStoreMark | null>
  /** Replaces the previous mark. */
  saveEventStoreMark(mark: EventStoreMark): Promise<void>
  /**
   * The person of each distinct id, ordered by project and id, starting after `after`. Only mappings with a version above 0
   * are overrides that the event store has; the page includes mappings at version 0 because leaving them out would require
   * a search. `erasures`: how often persons of the project had been erased when the page was read.
   */
  listOverrides(
    after: { readonly projectId: number; readonly distinctId: string } | null,
    limit: number,
  ): Promise<readonly (PersonIdOverride & { readonly erasures: number })[]>
}

// Leases on the schedules that one worker runs for all workers. A lease expires by itself when its owner has ended.

/** @throws PortError from every method, like `ManagementStore`. */
export interface ScheduleOwners {
  /**
   * Takes a schedule until `untilMs`, or extends the owner's lease. A lease of another owner is not touched until it
   * ends. All times are epoch ms of the workers' clocks, which must agree within a fraction of a lease.
   * @returns whether the owner holds the lease now.
   */
  claimSchedule(lease: ScheduleClaim): Promise<boolean>
  /** Gives up the owner's lease before its end. A lease of another owner is not touched. */
  releaseSchedule(name: string, ownerId: string): Promise<void>
}

export interface ScheduleClaim {
  readonly name: string
  readonly ownerId: string
  readonly nowMs: number
  readonly untilMs: number
}

/** Stores the retention time (core/trusted-time.ts) across restarts. @throws PortError like `ManagementStore`. */
export interface TrustedTimeStore {
  /** Null until a worker has read its clock. */
  findTrustedTime(): Promise<TrustedTime | null>
  saveTrustedTime(time: TrustedTime): Promise<void>
}

// Projects that the worker skips in a stream for now, so that one slow project does not delay all others. A second
// cursor takes their records; its position is stored under a separate name (`formatDeferredCursorName`).

export interface Deferral {
  /** The second cursor's position: records of the deferred projects before it are processed. */
  readonly offset: number
  /** Never empty. */
  readonly projects: readonly DeferredProject[]
}

export interface DeferredProject {
  readonly projectId: number
  /** From this offset on, the second cursor processes the project's records. */
  readonly fromOffset: number
}

/** @throws PortError from every method, like `ManagementStore`. */
export interface DeferredProjects {
  /** Null when no project of the stream is deferred. */
  findDeferral(stream: LogStream): Promise<Deferral | null>
  /**
   * Defers a project from `offset` on, in one transaction, if the stream's position is `offset` and this owner's. A
   * stream's first deferral moves its second cursor to `offset` and gives it to this owner. A project that is already
   * deferred stays unchanged.
   * @returns false, with nothing changed, if the stream has another position or another owner.
   */
  deferProject(stream: LogStream, ownerId: string, projectId: number, offset: number): Promise<boolean>
  /**
   * Ends all deferrals of a stream, in one transaction, if both cursors are at `offset` and belong to this owner.
   * @returns false, with nothing changed, otherwise.
   */
  releaseProjects(stream: LogStream, ownerId: string, offset: number): Promise<boolean>
}
