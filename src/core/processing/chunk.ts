// A chunk of the log as values: what its events may touch, what was loaded for them, and everything that they change.
// The worker's pure part (`process-chunk.ts`) turns the loaded values into changes; `ports/state/chunk-store.ts` loads
// and commits.

import type { Lane } from '../events/captured-event.ts'
import type { Group, GroupType } from '../groups/group.ts'
import type { GeneratedEvent, ImportChanges } from '../imports/import-changes.ts'
import type { ImportJobStatus } from '../imports/import-job.ts'
import type { JsonObject } from '../json.ts'
import type { ErasedId } from '../persons/erasure.ts'
import type { DistinctIdMapping, Person } from '../persons/person.ts'
import type { Project } from '../project.ts'
import type { VisitorChanges } from './visitors.ts'

/**
 * What to load for a chunk. Distinct ids, group types and group keys are well-formed text without NUL, as in the log.
 * Ids taken from properties have to be converted first, or what is stored under them is not found again.
 */
export interface ChunkSubjects {
  readonly distinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groups: readonly { readonly projectId: number; readonly typeName: string; readonly key: string }[]
  /** Groups whose type's index is known already. */
  readonly groupKeys?: readonly { readonly projectId: number; readonly typeIndex: number; readonly key: string }[]
  readonly projectIds: readonly number[]
  /**
   * The distinct ids that may take part in a merge: `personMappings` is loaded for their persons only. A person can
   * have very many ids, and ordinary events need none of them. When absent, it is loaded for every person.
   */
  readonly mergingDistinctIds?: readonly { readonly projectId: number; readonly distinctId: string }[]
  /** Ids of records that touch no person: they may have been erased. */
  readonly otherDistinctIds?: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly importJobIds?: readonly number[]
  /** Events that an importer may have generated, which other jobs may have sent with another time. */
  readonly generated?: readonly { readonly projectId: number; readonly uuid: string }[]
}

export interface LoadedChunk {
  readonly projects: readonly Project[]
  readonly mappings: readonly DistinctIdMapping[]
  /** Every person of `mappings`. */
  readonly persons: readonly Person[]
  /**
   * The JSON text of each person's properties, in the order of `persons`, if the store has it at hand. It is exactly
   * what JSON.stringify makes of them.
   */
  readonly personPropertiesJson?: readonly string[]
  /**
   * Every distinct id of those persons, or of the merging ones only (see ChunkSubjects), including those in `mappings`.
   * A person with more than `personDistinctIdCountMax` ids has any `personDistinctIdCountMax + 1` of them here: it is
   * never merged away.
   */
  readonly personMappings: readonly DistinctIdMapping[]
  /** How many bytes of text the store counted against the limit of the load. */
  readonly textBytes: number
  /** The same by project id. */
  readonly textBytesOf: ReadonlyMap<number, number>
  readonly personlessDistinctIds: readonly PersonlessId[]
  readonly groupTypes: readonly GroupType[]
  readonly groups: readonly Group[]
  /** By project: how often persons of it were erased, where they ever were. */
  readonly erasures?: ReadonlyMap<number, number>
  /** Those of the wanted ids that were erased while the log may still have records of them. */
  readonly erasedIds?: readonly ErasedId[]
  /** By project, where the discarding of an import job has begun: how often, and whether it is under way. */
  readonly importUndos?: ReadonlyMap<number, { readonly count: number; readonly isRunning: boolean }>
  /** The wanted jobs that exist, as of the same moment. */
  readonly importJobs?: readonly ImportJobStatus[]
  /** Those of the wanted generated events that were seen before. */
  readonly generated?: readonly GeneratedEvent[]
}

/** A distinct id that was used without a person. */
export interface PersonlessId {
  readonly projectId: number
  readonly distinctId: string
  /** The version of its mapping once it gets one. 1 unless an undone import gave the id an override. */
  readonly nextVersion?: number
}

/** A row to write, and its version when loaded; null = the row must not exist yet. */
export interface Versioned<T> {
  readonly row: T
  readonly loadedVersion: number | null
}

export interface ChunkChanges {
  readonly persons: readonly Versioned<Person>[]
  /**
   * Persons that were merged away. Their flag overrides move to the survivor in the order of this list (a row that the
   * survivor has wins), then the person's row is deleted. The survivor is the final one of the chunk, and `mappings`
   * moves every id of the merged person to it.
   */
  readonly deletedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly survivorUuid: string
    readonly loadedVersion: number
  }[]
  readonly mappings: readonly Versioned<DistinctIdMapping>[]
  /** The commit is a conflict if one of them got a person since the load, unless this chunk itself attaches it. */
  readonly personlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  /**
   * The ids of `mappings` that no event without a person had used at the load. The commit is a conflict if such an
   * event has used one since, because its mapping would then have to be an override.
   */
  readonly neverPersonlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groupTypes: readonly GroupType[]
  /** The existing types of `groups`. The commit is a conflict if one has been deleted since the load. */
  readonly usedGroupTypes: readonly GroupType[]
  readonly groups: readonly Versioned<Group>[]
  /** At most one for each flag key of a project. */
  readonly calledFlags: readonly CalledFlag[]
  /** All are counted; per project, type and UTC day the store keeps at most as many as `warningSamplesPerDay` says. */
  readonly warnings: readonly IngestionWarning[]
  /** Absent for a chunk without events of visitors that state is kept of. */
  readonly visitors?: VisitorChanges
  /** Absent for a chunk without events of import jobs. */
  readonly imports?: ImportChanges
  /**
   * By project, as loaded. The commit is a conflict if the discarding of an import job has begun since: what the rows name
   * may be gone.
   */
  readonly importUndos?: ReadonlyMap<number, number>
  /** What became of the chunk's records, per project. The sum equals the number of accepted records (I8). */
  readonly outcomes: readonly ChunkOutcome[]
}

/** A chunk that changes nothing. */
export const noChunkChanges: ChunkChanges = {
  persons: [],
  deletedPersons: [],
  mappings: [],
  personlessDistinctIds: [],
  neverPersonlessDistinctIds: [],
  groupTypes: [],
  usedGroupTypes: [],
  groups: [],
  calledFlags: [],
  warnings: [],
  outcomes: [],
}

/** The latest call of a flag among the live events of a chunk. The project need not have a flag with this key. */
export interface CalledFlag {
  readonly projectId: number
  readonly flagKey: string
  readonly calledAtMs: number
}

export interface IngestionWarning {
  readonly projectId: number
  readonly type: string
  readonly details: JsonObject
  readonly timestampMs: number
}

export interface ChunkOutcome {
  readonly projectId: number
  /** The record's own lane; a damaged record counts under the usual lane of its traffic. */
  readonly lane: Lane
  readonly outcome: 'stored' | 'dropped' | 'rejected'
  /** '' for stored. */
  readonly reason: string
  readonly count: number
}
