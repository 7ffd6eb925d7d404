// What a commit changes for import jobs beside persons, mappings and groups: links and notes of pending events, and while a
// job is published or undone, what it did so far. Each list may be empty.

import type { Group } from '../groups/group.ts'
import type { JsonObject } from '../json.ts'
import type { Person } from '../persons/person.ts'
import type { ImportJobStatus } from './import-job.ts'

/** Two distinct ids that an event of a pending job links. The links of a job are made when it is published, in order. */
export interface ImportLink {
  readonly importJobId: number
  readonly distinctId: string
  readonly otherId: string
  readonly dangerously: boolean
  readonly timestampMs: number
  /** Identifies the event that made the link. */
  readonly uuid: string
}

/** Something that happened to events of a job: a warning, a reject, a drop. */
export interface ImportNote {
  readonly importJobId: number
  readonly reason: string
  readonly count: number
  readonly samples: readonly JsonObject[]
}

/** How many samples a job keeps of each reason. Source: docs/wire/import.md §3.9. */
export const noteSampleCountMax = 20

/** A subject before and after a job was published; null where it did not exist. */
export type UndoRecord = { [Kind in SubjectKind]: UndoRecordOf<Kind> }[SubjectKind]

/** What is kept of a subject of each kind, which is named by `subject`. */
interface SubjectValues {
  /** Named by the person's uuid. `anyId`: one of its distinct ids, by which it is found again. */
  readonly person: Person & { readonly anyId: string }
  /** Named by the distinct id. */
  readonly mapping: { readonly personUuid: string; readonly version: number }
  /** Named by the person's uuid: how many distinct ids it had. `anyId`: one of them, by which it is found again. */
  readonly id_count: { readonly count: number; readonly anyId?: string }
  /**
   * Named by the uuid of a person that was merged away: before, what was its own; after, what the survivor (`personUuid`)
   * got of that.
   */
  readonly assignments: Assignments & { readonly personUuid: string }
  /** Named by type index and key, as `0:acme`. */
  readonly group: Group
  /** Named by its index. */
  readonly group_type: { readonly name: string }
  /** Named by ''. When publishing began: what is stored from then on, may stand on what the job wrote. Epoch ms. */
  readonly publish_start: { readonly atMs: number }
}

/** What is stored beside a person and moves with it in a merge. */
export interface Assignments {
  /** The flags whose values stay as they were (experience continuity), each with the id that is hashed. */
  readonly hashKeys: readonly (readonly [flagKey: string, hashKey: string])[]
  /** The static cohorts that it is a member of. */
  readonly cohortIds: readonly number[]
}

export type SubjectKind = keyof SubjectValues

export interface UndoRecordOf<Kind extends SubjectKind> {
  readonly importJobId: number
  readonly projectId: number
  readonly kind: Kind
  readonly subject: string
  readonly before: SubjectValues[Kind] | null
  readonly after: SubjectValues[Kind] | null
}

export interface SubjectName {
  readonly importJobId: number
  readonly kind: SubjectKind
  readonly subject: string
}

export interface ImportChanges {
  /** The commit is a conflict if one of these jobs has left this state or step since the load. */
  readonly jobs: readonly Pick<ImportJobStatus, 'id' | 'state' | 'step'>[]
  readonly links: readonly ImportLink[]
  readonly notes: readonly ImportNote[]
  /** Pending rows that the chunk stored, repeats within it once. */
  readonly storedRows: readonly { readonly importJobId: number; readonly count: number }[]
  /** Where a subject has an undo record already, its `before` stays as it is and its `after` is replaced. */
  readonly undoRecords: readonly UndoRecord[]
  /** Undo records of any job, replaced whole: what a job has built on may have been undone beneath it. */
  readonly rewrittenUndoRecords: readonly UndoRecord[]
  /** The job that keeps undo records of the `assignments` of persons that these changes merge away; null for none. */
  readonly keepsAssignmentsFor: number | null
  /** Assignments that return from the survivor to the person that was merged into it. The survivor keeps its own. */
  readonly returnedAssignments: readonly ReturnedAssignments[]
  /** Taken off the list of what has to be published. */
  readonly doneLinkIds: readonly number[]
  /** Subjects that were undone, or cannot be. */
  readonly doneUndoRecords: readonly SubjectName[]
  /** The commit is a conflict if one of them has changed since the load: whether it is used was asked of the event store. */
  readonly unchangedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly loadedVersion: number
  }[]
  /** Deleted without a survivor. The commit is a conflict if one changed since it was loaded, or has an id left. */
  readonly removedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly loadedVersion: number
  }[]
  readonly removedMappings: readonly {
    readonly projectId: number
    readonly distinctId: string
    readonly loadedVersion: number
  }[]
  readonly removedGroups: readonly {
    readonly projectId: number
    readonly typeIndex: number
    readonly key: string
    readonly loadedVersion: number
  }[]
  /** The version with which a distinct id without a mapping is attached next: above that of every override it had. */
  readonly nextVersions: readonly {
    readonly projectId: number
    readonly distinctId: string
    readonly version: number
  }[]
  /** Link and group events that an importer generated, seen for the first time. */
  readonly generated: readonly GeneratedEvent[]
}

export interface ReturnedAssignments {
  readonly projectId: number
  readonly uuid: string
  readonly assignments: Assignments
  readonly survivorUuid: string
  /** What the survivor loses, unless it has changed since. */
  readonly given: Assignments
}

/** The time that all copies of a generated event get, whichever job sends them. */
export interface GeneratedEvent {
  readonly projectId: number
  readonly uuid: string
  readonly timestampMs: number
  /** The job that sent it first; when that is discarded, its time is forgotten. */
  readonly importJobId: number
}

export const noImportChanges: ImportChanges = {
  jobs: [],
  links: [],
  notes: [],
  storedRows: [],
  undoRecords: [],
  rewrittenUndoRecords: [],
  keepsAssignmentsFor: null,
  returnedAssignments: [],
  doneLinkIds: [],
  doneUndoRecords: [],
  unchangedPersons: [],
  removedPersons: [],
  removedMappings: [],
  removedGroups: [],
  nextVersions: [],
  generated: [],
}
