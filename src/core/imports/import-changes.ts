// What a commit changes for import jobs besides persons, mappings and groups: links and notes of pending events and, while
// a job is published or undone, its progress. Each list may be empty.

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

/** Why undoing a job leaves something unchanged. The names are the reasons of the job's notes. */
export type UndoRefusal =
  /** The stored events do not explain it, so neither do they say what it was before. */
  | 'undo_left:history_is_incomplete'
  /** The event store cannot list the events: they are too many, or it takes too long. */
  | 'undo_left:events_not_readable'
  /** Groups, events or flags use the group type. */
  | 'undo_left:group_type_is_used'

/** How many samples a job keeps of each reason. Source: docs/wire/import.md §3.9. */
export const noteSampleCountMax = 20

/** A subject before and after a job was published; null where it did not exist. */
export type UndoRecord = { [Kind in SubjectKind]: UndoRecordOf<Kind> }[SubjectKind]

/** The stored values of each kind of subject. Each kind says what `subject` contains. */
interface SubjectValues {
  /** `subject` is the person's uuid. `anyId`: one of its distinct ids, to find it again. */
  readonly person: Person & { readonly anyId: string }
  /** `subject` is the distinct id. */
  readonly mapping: { readonly personUuid: string; readonly version: number }
  /** How many distinct ids the person with the uuid `subject` had. `anyId`: one of them, to find the person again. */
  readonly id_count: { readonly count: number; readonly anyId?: string }
  /**
   * `subject` is the uuid of a person that was merged away. Before: its own assignments; after: those that the survivor
   * (`personUuid`) took over.
   */
  readonly assignments: Assignments & { readonly personUuid: string }
  /** `subject` is type index and key, such as `0:acme`. */
  readonly group: Group
  /** `subject` is the type index. */
  readonly group_type: { readonly name: string }
  /** `subject` is ''. When publishing began, epoch ms: data stored since then may depend on what the job wrote. */
  readonly publish_start: { readonly atMs: number }
}

/** Data that is stored beside a person and moves with it in a merge. */
export interface Assignments {
  /** The flags with experience continuity, each with the id that is hashed instead of the distinct id. */
  readonly hashKeys: readonly (readonly [flagKey: string, hashKey: string])[]
  /** The static cohorts that the person is a member of. */
  readonly cohortIds: readonly number[]
}

/** What a merge by a job did to the assignments of the person that it merged away. */
export interface AssignmentsRecord {
  readonly importJobId: number
  readonly projectId: number
  /** The person that was merged away, and what it had. */
  readonly uuid: string
  readonly own: Assignments
  /** The person that it was merged into, and what that person took over. */
  readonly survivorUuid: string
  readonly taken: Assignments
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
  /** Pending rows that the chunk stored; a row repeated within the chunk counts once. */
  readonly storedRows: readonly { readonly importJobId: number; readonly count: number }[]
  /** If a subject already has an undo record, only its `after` is replaced. */
  readonly undoRecords: readonly UndoRecord[]
  /** Undo records of any job, replaced whole: the values that a later job built on may have been undone. */
  readonly rewrittenUndoRecords: readonly UndoRecord[]
  /** The job that stores undo records of the `assignments` of persons that these changes merge away; null if none does. */
  readonly keepsAssignmentsFor: number | null
  /** Assignments that return from the survivor to the person that was merged into it. The survivor keeps its own. */
  readonly returnedAssignments: readonly ReturnedAssignments[]
  /** Removed from the list of links to publish. */
  readonly doneLinkIds: readonly number[]
  /** Subjects that have been undone or cannot be. */
  readonly doneUndoRecords: readonly SubjectName[]
  /** The commit is a conflict if one has changed since the load: the event store's answer about its uses would be stale. */
  readonly unchangedPersons: readonly {
    readonly projectId: number
    readonly uuid: string
    readonly loadedVersion: number
  }[]
  /** Deleted without a survivor. The commit is a conflict if one changed since it was loaded, or still has a distinct id. */
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
  /** The version of the next mapping of a distinct id that has none: above the versions of all its earlier overrides. */
  readonly nextVersions: readonly {
    readonly projectId: number
    readonly distinctId: string
    readonly version: number
  }[]
  /** Link and group events generated by an importer and seen for the first time. */
  readonly generated: readonly GeneratedEvent[]
}

export interface ReturnedAssignments {
  readonly projectId: number
  readonly uuid: string
  readonly assignments: Assignments
  readonly survivorUuid: string
  /** Assignments that the survivor loses unless they have changed since. */
  readonly given: Assignments
}

/** The time given to all copies of a generated event, whichever job sends them. */
export interface GeneratedEvent {
  readonly projectId: number
  readonly uuid: string
  readonly timestampMs: number
  /** The job that sent the event first; discarding that job forgets the time. */
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
