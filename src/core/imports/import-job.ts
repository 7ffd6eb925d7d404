// An import job: what is sent under one plan, kept apart until it is published, and undone as a whole.
// Source: docs/wire/import.md §2.8, §2.11; docs/decisions/0053-import-jobs.md.

import type { JsonObject } from '../json.ts'
import type { JobFailure } from './job-failure.ts'

/** In the order in which a job passes them. */
export const importJobStates = [
  'planned',
  'rehearsed',
  'approved',
  'sending',
  'verifying',
  'pending',
  'publishing',
  'published',
  'discarding',
  'discarded',
  'failed',
] as const
export type ImportJobState = (typeof importJobStates)[number]

/** The states that a client reports of itself, and in which the job takes events. */
export const openStates = ['planned', 'rehearsed', 'approved', 'sending', 'verifying', 'pending'] as const
export type OpenState = (typeof openStates)[number]

/** What the worker does next for a job that is being published or discarded; null when it has nothing to do. */
export type ImportStep =
  /** Records of the job that were accepted before are still being processed. */
  | 'draining'
  | 'links'
  | 'persons'
  | 'groups'
  | 'person_properties'
  | 'rows'
  /** A published job is discarded: first its rows go, then what it did to persons and groups. */
  | 'undo_merges'
  | 'undo_persons'
  | 'undo_groups'
  | 'clearing'

/** The first id that a job can have: 0 means live, 1 imports that were sent before jobs were counted by day. */
export const firstImportJobId = 2

/** Numbers of jobs are columns and partitions of 32 bits. */
export const importJobNumberMax = 0xffff_ffff

/**
 * An id that nobody guesses, an integer from 2^32 to 2^53 - 1. Keys of projects are public, so knowing it is what allows
 * to add events to a job. It is never a number that rows name a job by.
 * @param random unpredictable integers, 0 to 2^32 - 1.
 */
export function newPublicImportJobId(random: () => number): number {
  const high = 1 + (random() % 0x1f_ffff)
  return high * 0x1_0000_0000 + random()
}

/** How many events the importer sends in one request at most. Source: docs/wire/import.md §2.5. */
export const importBatchEventsMax = 5_000

/** The header of `POST /batch/` that names the job of its events. */
export const importJobHeader = 'x-import-job'

/** How an import treats what live events wrote to persons, and what is added to it. Source: docs/wire/import.md 3.4 R4, R9; 3.8. */
export interface ImportOptions {
  /** Its `$set`s replace live values when it is published, as they do at PostHog. */
  readonly overwritesPersons: boolean
  /** Its `$set_once`s replace those of later live events. */
  readonly backdatesFirstTouch: boolean
  /** Its events get the location of the `$ip` that they were recorded with. */
  readonly looksUpGeoip: boolean
  /** Its flag calls count in experiments, by the time of the event. Source: docs/wire/import.md 3.3. */
  readonly countsInExperiments: boolean
}

export const usualOptions: ImportOptions = {
  overwritesPersons: false,
  backdatesFirstTouch: false,
  looksUpGeoip: false,
  countsInExperiments: false,
}

export interface ImportJob {
  /** The number that rows, partitions, marks and the staging overlay name it by; counts up, and is no secret. */
  readonly id: number
  /** The id that clients name it by: `newPublicImportJobId`. Implicit jobs, which no client sends to, have their number. */
  readonly publicId: number
  readonly projectId: number
  /** Rows that chunks stored for it while it was pending, repeats within a chunk once; null for an implicit job. */
  readonly storedRows: number | null
  /** The UTC day whose imports without a job of their own this job collects; null for a job that a client created. */
  readonly day: string | null
  readonly name: string
  readonly source: string
  readonly state: ImportJobState
  readonly step: ImportStep | null
  readonly options: ImportOptions
  readonly createdBy: string | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly publishedAtMs: number | null
  readonly discardedAtMs: number | null
  /** When its undoing was given up: what it would need is deleted. Null while it can be undone. */
  readonly finalAtMs: number | null
  /** While publishing or discarding it fails; null otherwise. */
  readonly failure: JobFailure | null
}

/** A job with what its client says of it. */
export interface DescribedImportJob extends ImportJob {
  /** The plan: range, zone, hashes, tool version. Up to 64 KiB. */
  readonly plan: JsonObject
  /** The progress; shown as it is, and `verified_rows` says what is missed when it is published. Up to 64 KiB. */
  readonly progress: JsonObject
}

/** What the worker needs to know of a job to process one of its events. */
export interface ImportJobStatus {
  readonly id: number
  readonly projectId: number
  readonly state: ImportJobState
  readonly step: ImportStep | null
  /** Whether something was noted about its events before. */
  readonly hasNotes: boolean
  readonly looksUpGeoip: boolean
}

export function isOpen(state: ImportJobState): state is OpenState {
  return (openStates as readonly string[]).includes(state)
}

/** Whether the job's events are kept apart: until it is published, and while the last ones are processed for that. */
export function isPending({ state, step }: Pick<ImportJob, 'state' | 'step'>): boolean {
  // What failed may go on, and is discarded like the others.
  return isOpen(state) || state === 'failed' || (state === 'publishing' && step === 'draining')
}

/**
 * The project id under which the persons and groups of a pending job are kept: the job's staging overlay. No project has a
 * negative id, so nothing that belongs to a project is ever found there.
 */
export function toStagingId(importJobId: number): number {
  return -importJobId
}

/** The job whose rows a partition of events holds, such as `7-202611`; null for live events and imports without a job. */
export function importJobOfPartition(partition: string): number | null {
  const id = Number(/^(\d+)-/.exec(partition)?.[1] ?? 0)
  return id >= firstImportJobId ? id : null
}

/** An implicit job collects a project's imports of a day that name no job. */
export interface ImplicitJob {
  readonly id: number
  /** Events that were accepted up to this time are the job's, epoch ms; null for the one that goes on. */
  readonly untilMs: number | null
}

const until = ' until '

/** @param day as a job has it: `YYYY-MM-DD`, with the end of the job if it was discarded. */
export function toImplicitJob(id: number, day: string): ImplicitJob {
  const at = day.indexOf(until)
  return { id, untilMs: at === -1 ? null : Number(day.slice(at + until.length)) }
}

/** The day of a job that takes nothing from now on. */
export function endedDay(day: string, nowMs: number): string {
  return `${day}${until}${nowMs}`
}

/** How many jobs of a project may be open at once: each has partitions of its own, and is a turn of its own for the worker. */
export const openJobsMax = 50
/** How many jobs a project may create within 24 hours, whatever becomes of them. */
export const jobsPerDayMax = 500
/**
 * How many jobs of a project may be open or published: their rows have partitions of their own for good. On the embedded
 * engine each adds about half a millisecond to a list of events of its project, a twentieth of one to those of others,
 * and 35 KB of memory.
 */
export const keptJobsMax = 1_000
/** How many discarded jobs of a project stay to be looked at, the latest ones; nothing of what they had is left. */
export const discardedJobsMax = 1_000

/** How often the implicit job of a project and day can be discarded: each time leaves a job, for good. */
export const implicitDiscardsMax = 100

/** How long after publishing a job can be undone. Source: docs/wire/import.md §2.11. */
export const undoDays = 30
