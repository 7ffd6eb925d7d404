// State as the worker sees it: load what a chunk's events may touch, then commit everything they change, with the
// position, in one transaction. Only the owner of a lane's position may commit.

import type { LogLane } from '#core/events/captured-event.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import type { JsonObject } from '#core/json.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import type { Project } from '#core/project.ts'

export interface ChunkStore {
  /**
   * Takes over a lane: from now on commits of other owners are refused. Answers where to read on.
   * `ownerId` is new with each worker process.
   */
  claimPosition(lane: LogLane, ownerId: string): Promise<{ offset: number }>
  /** One query each for mappings with their persons, personless ids, groups, group types and projects. Unknown ones are left out. */
  loadChunk(subjects: ChunkSubjects): Promise<LoadedChunk>
  /**
   * Everything or nothing. Rows are conditional on the version they were read at.
   * @returns `version_conflict` when a person, mapping or group changed since it was loaded: load and process again.
   *   `not_owner` when another worker claimed the lane: stop.
   * @throws PortError when the state cannot be written; nothing was.
   */
  commitChunk(
    changes: ChunkChanges,
    position: { lane: LogLane; ownerId: string; offset: number; committedAtMs: number },
  ): Promise<'committed' | 'version_conflict' | 'not_owner'>
  close(): Promise<void>
}

export interface ChunkSubjects {
  readonly distinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groups: readonly { readonly projectId: number; readonly typeName: string; readonly key: string }[]
  readonly projectIds: readonly number[]
}

export interface LoadedChunk {
  readonly projects: readonly Project[]
  readonly mappings: readonly DistinctIdMapping[]
  /** Every person that a mapping above leads to. */
  readonly persons: readonly Person[]
  /** Every distinct id of those persons, for merges: the mappings above included. */
  readonly personMappings: readonly DistinctIdMapping[]
  readonly personlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groupTypes: readonly GroupType[]
  readonly groups: readonly Group[]
}

/** A row to write and the version it stood at when loaded; null = it must not exist yet. */
export interface Versioned<T> {
  readonly row: T
  readonly loadedVersion: number | null
}

export interface ChunkChanges {
  readonly persons: readonly Versioned<Person>[]
  /** Merged away: their flag overrides move to the survivor (a row the survivor has wins), then the row goes. */
  readonly deletedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly survivorUuid: string
    readonly loadedVersion: number
  }[]
  readonly mappings: readonly Versioned<DistinctIdMapping>[]
  readonly personlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groupTypes: readonly GroupType[]
  readonly groups: readonly Versioned<Group>[]
  readonly warnings: readonly IngestionWarning[]
  /** What became of the chunk's records, per project; the sum balances with what was accepted (I8). */
  readonly outcomes: readonly ChunkOutcome[]
}

export interface IngestionWarning {
  readonly projectId: number
  readonly type: string
  readonly details: JsonObject
  readonly timestampMs: number
}

export interface ChunkOutcome {
  readonly projectId: number
  readonly lane: LogLane
  /** `stored`, `dropped` or `rejected`. */
  readonly outcome: 'stored' | 'dropped' | 'rejected'
  /** '' for stored. */
  readonly reason: string
  readonly count: number
}
