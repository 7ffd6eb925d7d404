// Import jobs in the state: what clients and the worker know about them, and the remaining work of publishing and
// undoing.

import type { Author, Change } from '#core/author.ts'
import type { Group } from '#core/groups/group.ts'
import type { AssignmentsRecord, ImportLink, ImportNote, NamedGroupType } from '#core/imports/import-changes.ts'
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
  /** Limit on the project's jobs that are neither published nor discarded. */
  readonly openMax: number
  /** Limit on the jobs that the project creates within 24 hours. */
  readonly perDayMax: number
  /** Limit on the project's jobs that are not discarded; implicit jobs do not count. */
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
 * The fields of a job that every one of its batches needs. The plan and the progress, which may be long, are read only to
 * show them.
 */
export type NamedImportJob = Pick<DescribedImportJob, 'id' | 'projectId' | 'publicId' | 'state'>

export interface ImportJobStore {
  /**
   * Creates a job in state `planned`. Its `id` ascends from 2 and is never reused. Even if jobs are created concurrently,
   * the project never has more than the limits allow.
   * @throws PortError `conflict` when another job has its public id.
   */
  createImportJob(
    job: NewImportJob,
    limits: ImportJobLimits,
    change: Change,
  ): Promise<Result<DescribedImportJob, TooManyJobs>>
  /**
   * The jobs that collect the project's imports of a UTC day (`YYYY-MM-DD`) without an explicit job: discarded jobs, and
   * perhaps a job that is still open.
   */
  listImplicitJobs(projectId: number, day: string): Promise<readonly ImplicitJob[]>
  /** Creates the implicit job that collects a day's imports from now on, unless an open one exists. */
  createImplicitJob(projectId: number, day: string, nowMs: number): Promise<void>
  findImportJob(id: number): Promise<DescribedImportJob | null>
  findImportJobByPublicId(publicId: number): Promise<DescribedImportJob | null>
  /** The jobs with one of up to 1,000 public ids, in any order. */
  findNamedImportJobs(publicIds: readonly number[]): Promise<readonly NamedImportJob[]>
  /** The numbers of the project's jobs whose flag calls count in experiments. */
  listJobsInExperiments(projectId: number): Promise<readonly number[]>
  /** The project's jobs, newest first: as many as fit into a page of a mebibyte. */
  listImportJobs(
    projectId: number,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<{ readonly count: number; readonly jobs: readonly DescribedImportJob[] }>
  /**
   * Changes a job that is in one of these states, and at the given step, if any. A final job is not discarded.
   * @param by null for a step of the worker, which is not in the activity log.
   * @returns the updated job; null if it is in another state or at another step, or does not exist.
   */
  updateImportJob(
    id: number,
    change: ImportJobChange,
    from: { readonly states: readonly ImportJobState[]; readonly step?: ImportStep | null },
    by: Author | null,
  ): Promise<DescribedImportJob | null>
  /** Notes on the job's events and on its publishing or undoing: one per reason, the most frequent first. */
  listImportNotes(importJobId: number): Promise<readonly ImportNote[]>
}

/** A job with work for the worker. */
export type OpenImportWork = ImportJob & { readonly isProjectGone: boolean }

/** The items, by kind, that a job keeps separate until it is published, without those already published. */
export interface StagedItems {
  /** In the order in which the links are applied: by time, then by uuid. */
  readonly links: { readonly id: number; readonly link: ImportLink }
  /** Distinct ids of persons. */
  readonly ids: string
  /** Distinct ids that were used without a person. These stay in the list after they are published. */
  readonly personlessIds: string
  readonly groups: Pick<Group, 'typeIndex' | 'key'>
}

/** What the worker needs for publishing and undoing. */
export interface ImportWorkStore {
  /**
   * Jobs that are being published or discarded, and jobs of deleted projects that are neither published nor discarded;
   * the oldest change first.
   */
  listImportWork(): Promise<readonly OpenImportWork[]>
  /** Records why the job does not progress, or that it progresses again. The job's `updatedAtMs` stays unchanged. */
  recordImportFailure(importJobId: number, failure: JobFailure | null): Promise<void>
  /** The first staged items of a kind, in order. @param afterId for distinct ids: only those after this id. */
  listStagedItems<Kind extends keyof StagedItems>(
    importJobId: number,
    kind: Kind,
    limit: number,
    afterId?: string | null,
  ): Promise<readonly StagedItems[Kind][]>
  /** The group types that the job's events name. */
  listNamedGroupTypes(importJobId: number): Promise<readonly NamedGroupType[]>
  /** What the job's merges did to the assignments of these persons. */
  findAssignments(importJobId: number, uuids: readonly string[]): Promise<readonly AssignmentsRecord[]>
  /**
   * Deletes the job's staging overlay and links, and for a job that is discarded also its assignments, group types and
   * times of generated events, some thousand rows per call, so that others may write in between. @returns whether there is
   * more to delete.
   */
  clearImportJob(importJobId: number, of: 'staging' | 'everything'): Promise<boolean>
  /**
   * Makes published jobs final if they were published before this time or their project is deleted: from then on, they
   * cannot be discarded. Deletes what undoing them needs, in steps between which others may write.
   * @param clock if it is trusted, jobs that were published in its future are treated as published now, since a wrong clock
   * would otherwise keep them for too long.
   */
  finalizeImportJobs(
    publishedBeforeMs: number,
    clock: { readonly nowMs: number; readonly isTrusted: boolean },
  ): Promise<void>
  /**
   * Deletes discarded jobs of a project with their notes, except the `keptCount` that were discarded last; a limited number
   * per call. Implicit jobs stay: they record which of the events in the log are deleted.
   */
  deleteDiscardedJobs(projectId: number, keptCount: number): Promise<void>
}
