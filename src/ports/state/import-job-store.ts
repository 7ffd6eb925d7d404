// Import jobs in the state: what clients and the worker know about them, and the remaining work of publishing and
// undoing.

import type { Author, Change } from '#core/author.ts'
import type { Group } from '#core/groups/group.ts'
import type {
  AssignmentsRecord,
  ImportLink,
  ImportNote,
  SubjectKind,
  UndoRecord,
} from '#core/imports/import-changes.ts'
import type {
  DescribedImportJob,
  ImplicitJob,
  ImportJob,
  ImportJobState,
  ImportStep,
} from '#core/imports/import-job.ts'
import type { JobFailure } from '#core/imports/job-failure.ts'
import type { Result } from '#core/result.ts'

export type NewImportJob = Pick<DescribedImportJob, 'publicId' | 'projectId' | 'name' | 'source' | 'options' | 'plan'>

export interface ImportJobLimits {
  /** Jobs of the project that are neither published nor discarded. */
  readonly openMax: number
  /** Jobs that the project created within the last 24 hours. */
  readonly perDayMax: number
  /** Jobs of the project that are not discarded, without implicit jobs. */
  readonly keptMax: number
}

export type TooManyJobs = 'too_many_open' | 'too_many_per_day' | 'too_many_kept'

export type ImportJobChange = Partial<
  Pick<
    DescribedImportJob,
    'name' | 'day' | 'state' | 'step' | 'plan' | 'progress' | 'publishBeganAtMs' | 'publishedAtMs' | 'discardedAtMs'
  >
> & { readonly updatedAtMs: number }

/**
 * The fields of a job that each of its batches needs. The plan and the progress, which may be long, are read only to
 * show them.
 */
export type NamedImportJob = Pick<DescribedImportJob, 'id' | 'projectId' | 'publicId' | 'state'>

export interface ImportJobStore {
  /**
   * Makes a job in state `planned`. Its `id` ascends from 2 and is never reused. However many are created at once, the
   * project never has more than the limits allow.
   * @throws PortError `conflict` when another job has its public id.
   */
  createImportJob(
    job: NewImportJob,
    limits: ImportJobLimits,
    change: Change,
  ): Promise<Result<DescribedImportJob, TooManyJobs>>
  /**
   * The jobs that collect the project's imports of a UTC day (`YYYY-MM-DD`) without an explicit job: discarded ones,
   * and perhaps one that is still open.
   */
  listImplicitJobs(projectId: number, day: string): Promise<readonly ImplicitJob[]>
  /** Creates the job that collects a day from now on, unless one exists. */
  createImplicitJob(projectId: number, day: string, nowMs: number): Promise<void>
  findImportJob(id: number): Promise<DescribedImportJob | null>
  findImportJobByPublicId(publicId: number): Promise<DescribedImportJob | null>
  /** The jobs with one of up to 1,000 public ids, in any order. */
  findNamedImportJobs(publicIds: readonly number[]): Promise<readonly NamedImportJob[]>
  /** The numbers of the project's jobs whose flag calls count in experiments. */
  listJobsInExperiments(projectId: number): Promise<readonly number[]>
  /** The newest first, as many as fit into a page of a mebibyte. */
  listImportJobs(
    projectId: number,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly count: number; readonly jobs: readonly DescribedImportJob[] }>
  /**
   * Changes a job that is in one of these states, and at this step if one is given. A final job is not discarded.
   * @param by null for a step of the worker, which is not in the activity log.
   * @returns the updated job; null if it is in another state or at another step, or does not exist.
   */
  updateImportJob(
    id: number,
    change: ImportJobChange,
    from: { readonly states: readonly ImportJobState[]; readonly step?: ImportStep | null },
    by: Author | null,
  ): Promise<DescribedImportJob | null>
  /** What happened to the job's events and while it was published or undone, by reason, the most frequent first. */
  listImportNotes(importJobId: number): Promise<readonly ImportNote[]>
}

/** What the worker needs for publishing and undoing. Lists contain the subjects that remain to be done. */
export interface ImportWorkStore {
  /** Jobs that are being published or discarded, the oldest change first. */
  listImportWork(): Promise<readonly ImportJob[]>
  /** Records why the job does not progress, or that it does again. Its `updatedAtMs` stays unchanged. */
  noteImportFailure(importJobId: number, failure: JobFailure | null): Promise<void>
  /**
   * Jobs of deleted projects that hold any data: those that are neither published nor discarded, and published ones
   * with undo records.
   */
  listJobsOfGoneProjects(): Promise<readonly ImportJob[]>
  /** In the order in which they are made: by time, then by uuid. */
  listImportLinks(
    importJobId: number,
    limit: number,
  ): Promise<readonly { readonly id: number; readonly link: ImportLink }[]>
  /** Distinct ids of persons in the staging overlay. */
  listStagedIds(importJobId: number, limit: number): Promise<readonly string[]>
  /** Ids in the staging overlay that were used without a person, after the given one, in order. */
  listStagedPersonlessIds(importJobId: number, after: string | null, limit: number): Promise<readonly string[]>
  listStagedGroups(importJobId: number, limit: number): Promise<readonly Pick<Group, 'typeIndex' | 'key'>[]>
  /** The first undo records of a kind. */
  listUndoRecords(importJobId: number, kind: SubjectKind, limit: number): Promise<readonly UndoRecord[]>
  /** Finds the undo records that one or several jobs have for these subjects. */
  findUndoRecords(
    importJobIds: readonly number[],
    kind: SubjectKind,
    subjects: readonly string[],
  ): Promise<readonly UndoRecord[]>
  /** What the job's merges did to the assignments of these persons. */
  findAssignments(importJobId: number, uuids: readonly string[]): Promise<readonly AssignmentsRecord[]>
  /** The jobs of the same project that were published after this one and are not discarded, in that order. */
  listLaterImportJobs(job: Pick<ImportJob, 'id' | 'projectId' | 'publishedAtMs'>): Promise<readonly number[]>
  /**
   * The project's jobs with events that name the group type, according to their undo records: published ones first, in
   * that order.
   */
  listJobsNamingGroupType(projectId: number, typeIndex: number): Promise<readonly number[]>
  /** A distinct id of each of these persons that still exists. */
  findIdsOfPersons(projectId: number, uuids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Persons with a value of the job, in pages: the last `cursor` continues. @param after null for the first page. */
  listMarkedPersons(
    job: Pick<ImportJob, 'id' | 'projectId'>,
    after: number | null,
    limit: number,
  ): Promise<readonly { readonly cursor: number; readonly uuid: string }[]>
  /** The same for groups. */
  listMarkedGroups(
    job: Pick<ImportJob, 'id' | 'projectId'>,
    after: Pick<Group, 'typeIndex' | 'key'> | null,
    limit: number,
  ): Promise<readonly Pick<Group, 'typeIndex' | 'key'>[]>
  /**
   * Deletes the remaining rows of the job's staging overlay and links. @returns whether there is more, after some
   * thousand rows.
   */
  clearStaging(importJobId: number): Promise<boolean>
  /** Deletes the undo records of a job that can no longer be undone, in steps between which others may write. */
  deleteUndoRecords(importJobId: number): Promise<void>
  /** Deletes the times that a discarded job gave to generated events, also in such steps. */
  forgetGenerated(importJobId: number): Promise<void>
  /**
   * Deletes discarded jobs of a project with their notes, except the `keptCount` that were discarded last, some at a
   * time. Implicit jobs stay: they record which of the events in the log are deleted.
   */
  forgetDiscardedJobs(projectId: number, keptCount: number): Promise<void>
  /**
   * Published jobs that were published before this time and are not final, and final ones that still have undo records.
   */
  listFinalImportJobs(publishedBeforeMs: number): Promise<readonly number[]>
  /**
   * Makes a published job final, before its undo records are deleted: from then on it cannot be discarded.
   * @returns whether it is final; false when it is being discarded.
   */
  makeImportJobFinal(importJobId: number, nowMs: number): Promise<boolean>
  /**
   * Treats jobs published after this time, the present, as published now: a wrong clock would keep them for too long.
   */
  dateBackImportJobs(nowMs: number): Promise<void>
}
