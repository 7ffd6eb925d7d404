// State as the worker sees it: load what a chunk's events may touch, then commit everything they change, with the
// position, in one transaction. Only the owner of a lane's position may commit.

import type { LogLane } from '#core/events/captured-event.ts'
import type { ChunkChanges, ChunkSubjects, LoadedChunk } from '#core/processing/chunk.ts'

export type {
  ChunkChanges,
  ChunkOutcome,
  ChunkSubjects,
  IngestionWarning,
  LoadedChunk,
  Versioned,
} from '#core/processing/chunk.ts'

/** Offsets of the lane's log; `committedAtMs` epoch ms. */
export interface ChunkPosition {
  readonly lane: LogLane
  readonly ownerId: string
  /** Where the owner took the lane to stand when it read the chunk; absent for what was read from no log. */
  readonly fromOffset?: number
  readonly offset: number
  readonly committedAtMs: number
}

export interface ChunkStore {
  /**
   * Takes over a lane: from now on commits of other owners are refused. Answers where to read on.
   * `ownerId` is new with each worker process.
   */
  claimPosition(lane: LogLane, ownerId: string): Promise<{ offset: number }>
  /**
   * Where a lane stands, without taking it; null when it is not this owner's. Differs from what the owner committed last
   * when the state came back from an older copy under it.
   */
  findOwnPosition(lane: LogLane, ownerId: string): Promise<number | null>
  /**
   * One query each for mappings with their persons, personless ids, groups, group types and projects, all of one moment,
   * and one more for texts that are long. Unknown ones are left out, groups of a project that is not in `projectIds` too.
   * @param textBytesMax how much property text, marks included, the persons and groups may have together; each other id
   *   of a merging person counts as 256 bytes.
   * @returns `too_large` when they have more; not much more than that was read from the store by then.
   * @throws PortError when the state cannot be read.
   */
  loadChunk(subjects: ChunkSubjects, textBytesMax: number): Promise<LoadedChunk | 'too_large'>
  /**
   * Everything or nothing. Rows are conditional on the version they were read at.
   * @returns `version_conflict` when a person, mapping or group changed since it was loaded, or a distinct id was used with
   *   or without a person against what these changes take for granted: load and process again.
   *   `not_owner` when another worker claimed the lane: stop. `position_moved` when the lane is this owner's and stands
   *   elsewhere: the state came back from an older copy, so read on from where it stands.
   * @throws PortError when the state cannot be written; nothing was.
   */
  commitChunk(
    changes: ChunkChanges,
    position: ChunkPosition,
  ): Promise<'committed' | 'version_conflict' | 'not_owner' | 'position_moved'>
  close(): Promise<void>
}
