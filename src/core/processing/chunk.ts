// The values of a chunk: what its events may touch, what was loaded, and what changes. The worker's pure part
// (`process-chunk.ts`) turns the loaded values into changes; `ports/state/chunk-store.ts` loads and commits.

import type { Lane } from '../events/captured-event.ts'
import type { Group, GroupType } from '../groups/group.ts'
import type { GeneratedEvent, ImportChanges } from '../imports/import-changes.ts'
import type { ImportJobStatus } from '../imports/import-job.ts'
import type { JsonObject } from '../json.ts'
import type { ErasedId } from '../persons/erasure.ts'
import type { DistinctIdMapping, Person } from '../persons/person.ts'
import type { SplitDistinctId } from '../persons/person-repair.ts'
import type { Project } from '../project.ts'
import type { VisitorChanges } from './visitors.ts'

/**
 * What to load for a chunk. Distinct ids, group types and group keys are well-formed text without NUL, as in the log.
 * Convert ids taken from properties first; otherwise they do not match the stored ids.
 */
export interface ChunkSubjects {
  readonly distinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groups: readonly { readonly projectId: number; readonly typeName: string; readonly key: string }[]
  /** Groups whose type index is already known. */
  readonly groupKeys?: readonly { readonly projectId: number; readonly typeIndex: number; readonly key: string }[]
  readonly projectIds: readonly number[]
  /**
   * The distinct ids that may take part in a merge: `personMappings` is loaded for their persons only, because a person can
   * have very many ids and ordinary events need none of them. When this field is absent, `personMappings` is loaded for
   * every person.
   */
  readonly mergingDistinctIds?: readonly { readonly projectId: number; readonly distinctId: string }[]
  /** Ids of records that touch no person, to check whether the ids were erased. */
  readonly otherDistinctIds?: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly importJobIds?: readonly number[]
  /** Events that an importer may have generated: other jobs may have sent them with another time. */
  readonly generated?: readonly { readonly projectId: number; readonly uuid: string }[]
}

export interface LoadedChunk {
  readonly projects: readonly Project[]
  readonly mappings: readonly DistinctIdMapping[]
  /** Every person that `mappings` refers to. */
  readonly persons: readonly Person[]
  /**
   * The JSON text of each person's properties, in the order of `persons`, if the store has that text anyway; identical to
   * the result of JSON.stringify.
   */
  readonly personPropertiesJson?: readonly string[]
  /**
   * Every distinct id of `persons`, or only of persons that may merge (see ChunkSubjects), including the ids in `mappings`.
   * Of a person with more than `personDistinctIdCountMax` ids, only `personDistinctIdCountMax + 1` arbitrary ids are
   * listed, which is enough: such a person is never merged away.
   */
  readonly personMappings: readonly DistinctIdMapping[]
  /** How many bytes of text the store counted against the limit of the load. */
  readonly textBytes: number
  /** `textBytes` by project id. */
  readonly textBytesOf: ReadonlyMap<number, number>
  readonly personlessDistinctIds: readonly PersonlessId[]
  readonly groupTypes: readonly GroupType[]
  readonly groups: readonly Group[]
  /** How often persons were erased, by project; projects with a count of 0 are left out. */
  readonly erasures?: ReadonlyMap<number, number>
  /** The wanted ids that were erased and of which the log may still have records. */
  readonly erasedIds?: readonly ErasedId[]
  /** By project, if import jobs were ever discarded: how often, and whether a discard is running. */
  readonly importUndos?: ReadonlyMap<number, { readonly count: number; readonly isRunning: boolean }>
  /** The wanted jobs that exist, read in the same transaction. */
  readonly importJobs?: readonly ImportJobStatus[]
  /** The wanted generated events that were seen before. */
  readonly generated?: readonly GeneratedEvent[]
}

/** A distinct id that was used without a person. */
export interface PersonlessId {
  readonly projectId: number
  readonly distinctId: string
  /** The version of the mapping that the id gets later. 1 unless an undone import gave the id an override. */
  readonly nextVersion?: number
}

/** A row to write, and its version when loaded; null if the row must not exist yet. */
export interface Versioned<T> {
  readonly row: T
  readonly loadedVersion: number | null
}

export interface ChunkChanges {
  readonly persons: readonly Versioned<Person>[]
  /**
   * Persons that were merged away. Their flag overrides move to the survivor in the order of this list (the survivor's own
   * rows win), then the person's row is deleted. `survivorUuid` names the person that remains after all merges of the
   * chunk, and `mappings` moves every id of the merged person to it.
   */
  readonly deletedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly survivorUuid: string
    readonly loadedVersion: number
  }[]
  readonly mappings: readonly Versioned<DistinctIdMapping>[]
  /**
   * The commit is a conflict if one of these ids has got a person since the load, unless this chunk itself attaches the id.
   */
  readonly personlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  /**
   * The ids of `mappings` that no event without a person had used at the load. The commit is a conflict if such an event
   * has used one of the ids since, because that id's mapping would then need to be an override.
   */
  readonly neverPersonlessDistinctIds: readonly { readonly projectId: number; readonly distinctId: string }[]
  readonly groupTypes: readonly GroupType[]
  /** The existing types of `groups`. The commit is a conflict if one has been deleted since the load. */
  readonly usedGroupTypes: readonly GroupType[]
  readonly groups: readonly Versioned<Group>[]
  /** At most one for each flag key of a project. */
  readonly calledFlags: readonly CalledFlag[]
  /** All warnings are counted; the store keeps at most `findWarningSamplesMax` per project, type and UTC day. */
  readonly warnings: readonly IngestionWarning[]
  /** Absent for a chunk without events of stateful cookieless visitors. */
  readonly visitors?: VisitorChanges
  /** Absent for a chunk without events of import jobs. */
  readonly imports?: ImportChanges
  /** The distinct ids of a person that these changes split; each entry replaces an earlier entry for the same id. */
  readonly splits?: readonly SplitDistinctId[]
  /**
   * By project, the count of discards as loaded. The commit is a conflict if discarding an import job has begun since: the
   * persons and groups in the rows may be gone.
   */
  readonly importUndos?: ReadonlyMap<number, number>
  /** The outcomes of the chunk's records, per project. The sum equals the number of accepted records (I8). */
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

/** The latest call of a flag among the live events of a chunk. The project may have no flag with this key. */
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
