// A chunk of the log as values: what its events may touch, what was loaded for them, and everything they change.
// The worker's pure part (`process-chunk.ts`) turns the second into the third; `ports/chunk-store.ts` loads and commits.

import type { Lane } from '../events/captured-event.ts'
import type { Group, GroupType } from '../groups/group.ts'
import type { JsonObject } from '../json.ts'
import type { DistinctIdMapping, Person } from '../persons/person.ts'
import type { Project } from '../project.ts'

/**
 * Distinct ids, group types and group keys are well-formed text without NUL, as the log keeps them: ids that come out
 * of properties have to be made so first, or what is stored under them is not found again.
 */
export interface ChunkSubjects {
  readonly distinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groups: readonly { readonly projectId: number; readonly typeName: string; readonly key: string }[]
  readonly projectIds: readonly number[]
  /**
   * The distinct ids that may take part in a merge: only their persons' other ids are loaded into `personMappings`. A
   * person can have very many ids, and ordinary events need none of them. Left out: those of every person.
   */
  readonly mergingDistinctIds?: readonly { readonly projectId: number; readonly distinctId: string }[]
}

export interface LoadedChunk {
  readonly projects: readonly Project[]
  readonly mappings: readonly DistinctIdMapping[]
  /** Every person that a mapping above leads to. */
  readonly persons: readonly Person[]
  /** The JSON text of each person's properties, in the order of `persons`, where the store has it at hand: exactly what JSON.stringify makes of them. */
  readonly personPropertiesJson?: readonly string[]
  /**
   * Every distinct id of those persons (of the merging ones, see ChunkSubjects): the mappings above included. Of a person
   * with more than `personDistinctIdCountMax` any of them, one more than that: it is not merged away.
   */
  readonly personMappings: readonly DistinctIdMapping[]
  /** What the store counted of it against the limit of the load. */
  readonly textBytes: number
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
  /**
   * Merged away: their flag overrides move to the survivor in the order of this list (a row the survivor has wins), then
   * the row goes. The survivor is the last one of the chunk, and `mappings` leads every id of the merged person elsewhere.
   */
  readonly deletedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly survivorUuid: string
    readonly loadedVersion: number
  }[]
  readonly mappings: readonly Versioned<DistinctIdMapping>[]
  /** Refused as a conflict when one has come to lead to a person since the load; one that this chunk attaches has not. */
  readonly personlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  /**
   * Those ids of `mappings` that no event without a person had used at the load. The commit is refused as a conflict when
   * one has been used since, because its mapping would then have to be an override.
   */
  readonly neverPersonlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groupTypes: readonly GroupType[]
  /** Those known before under which `groups` are written: refused as a conflict when one has been deleted since the load. */
  readonly usedGroupTypes: readonly GroupType[]
  readonly groups: readonly Versioned<Group>[]
  /** Counted exactly; kept as samples, at most 20 of a type in a project's UTC day. */
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
  /** The record's own; of a damaged one, which tells nothing, that of its log. */
  readonly lane: Lane
  /** `stored`, `dropped` or `rejected`. */
  readonly outcome: 'stored' | 'dropped' | 'rejected'
  /** '' for stored. */
  readonly reason: string
  readonly count: number
}
