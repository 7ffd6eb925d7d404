// The worker's access to state: it loads what a chunk's events may touch, then commits everything they change, with the
// position, in one transaction. Only the owner of a stream's position may commit.

import type { LogStream } from '#core/events/log-stream.ts'
import type { ChunkChanges, ChunkSubjects, LoadedChunk } from '#core/processing/chunk.ts'
import type {
  LoadedIdentifies,
  VisitorSession,
  VisitorSessionName,
  WantedIdentifies,
} from '#core/processing/visitors.ts'

export type {
  CalledFlag,
  ChunkChanges,
  ChunkOutcome,
  ChunkSubjects,
  IngestionWarning,
  LoadedChunk,
  Versioned,
} from '#core/processing/chunk.ts'

/** Offsets are those of one log stream; `committedAtMs` is in epoch ms. */
export interface ChunkPosition {
  readonly stream: LogStream
  readonly ownerId: string
  /**
   * The owner's position when it read the chunk; if it has changed since, the commit is refused. Not compared when absent.
   */
  readonly fromOffset?: number
  readonly offset: number
  readonly committedAtMs: number
}

export interface ChunkStore {
  /**
   * Takes over a stream: from now on, commits by other owners are refused.
   * @param ownerId new for each worker process.
   * @returns the offset to read from.
   */
  claimPosition(stream: LogStream, ownerId: string): Promise<{ offset: number }>
  /**
   * The position of a stream that this owner has claimed; null if another owner has claimed it since. It differs from the
   * owner's last commit if the state was replaced by an older copy.
   */
  findOwnPosition(stream: LogStream, ownerId: string): Promise<number | null>
  /**
   * Reads everything as of one point in time. Unknown subjects are left out, as are groups of projects that are not in
   * `projectIds`. One query reads a list of ids.
   * @param textBytesMax limit on the property text, marks included, of all these persons and groups together; each
   * other id of a merging person counts as 256 bytes.
   * @returns `too_large` if they exceed the limit; the store stops reading soon after that.
   * @throws PortError if the state cannot be read.
   */
  loadChunk(subjects: ChunkSubjects, textBytesMax: number): Promise<LoadedChunk | 'too_large'>
  /**
   * Reads the known `$identify` events of cookieless visitors. No visitor may be named twice.
   * @throws PortError if the state cannot be read.
   */
  loadIdentifies(wanted: WantedIdentifies): Promise<LoadedIdentifies>
  /**
   * Reads all sessions of these names, in any order: at most about a hundred per name, since a session lasts for half
   * an hour and its visitor for a day. No name may occur twice.
   * @throws PortError if the state cannot be read.
   */
  loadSessions(wanted: readonly VisitorSessionName[]): Promise<readonly VisitorSession[]>
  /**
   * Writes everything or nothing. Each row is written only if it still has the version that was loaded. For `calledFlags`
   * that exist in the project and are not deleted, the time of the call is stored as their last call, unless a later call
   * is known; the flags' versions and the revision stay unchanged.
   * @returns `version_conflict` if a person, mapping or group changed since it was loaded, if a group type in use was
   * deleted, if a distinct id that these changes use without a person now has a person, or if a distinct id that they map
   * to a person has since been used without a person: load and process again. `not_owner` if another worker has claimed the
   * stream: stop. `position_moved` if this owner's stream is not at `fromOffset`: the state was replaced by an older copy,
   * so continue reading from the state's position.
   * @throws PortError if the state cannot be written. Nothing was written then, unless only the answer was lost:
   * compare the position.
   */
  commitChunk(
    changes: ChunkChanges,
    position: ChunkPosition,
  ): Promise<'committed' | 'version_conflict' | 'not_owner' | 'position_moved'>
  close(): Promise<void>
}
