// An import job: events sent under one plan, kept separate until the job is published, and undone as a whole.
// Source: docs/wire/import.md §2.8, §2.11; docs/decisions/0053-import-jobs.md.

import type { Author } from '../author.ts'
import type { JsonObject } from '../json.ts'
import type { JobFailure } from './job-failure.ts'

/** A job's states, in the order in which it passes through them. */
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

/** The states that a client sets. In these states the job accepts events. */
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
  /** Discarding a published job undoes its changes to persons and groups while the job's rows still show these changes. */
  | 'undo'
  | 'clearing'

/** The first id that a job can have: 0 means live events, 1 imports from before implicit jobs existed. */
export const firstImportJobId = 2

/** Job numbers are stored in 32-bit columns and partition keys. */
export const importJobNumberMax = 0xffff_ffff

/**
 * An unguessable id, an integer from 2^32 to 2^53 - 1. Project keys are public, so this id is the secret that allows adding
 * events to a job. It never equals a job number in a row.
 * @param random unpredictable integers, 0 to 2^32 - 1.
 */
export function createPublicImportJobId(random: () => number): number {
  const high = 1 + (random() % 0x1f_ffff)
  return high * 0x1_0000_0000 + random()
}

/** The most events that the importer sends in one request. Source: docs/wire/import.md §2.5. */
export const importBatchEventsMax = 5_000

/** The header of `POST /batch/` that names the job of its events. */
export const importJobHeader = 'x-import-job'

/**
 * How an import treats person properties written by live events, and how its events are enriched. Source:
 * docs/wire/import.md 3.4 R4, R9; 3.8.
 */
export interface ImportOptions {
  /** When the job is published, its `$set`s replace live values, as at PostHog. */
  readonly overwritesPersons: boolean
  /** The job's `$set_once`s replace the `$set_once`s of later live events. */
  readonly backdatesFirstTouch: boolean
  /** The job's events get the location of the `$ip` with which they were recorded. */
  readonly looksUpGeoip: boolean
  /** The job's flag calls count in experiments, by the time of the event. Source: docs/wire/import.md 3.3. */
  readonly countsInExperiments: boolean
}

export const usualOptions: ImportOptions = {
  overwritesPersons: false,
  backdatesFirstTouch: false,
  looksUpGeoip: false,
  countsInExperiments: false,
}

/** The options under their names in the private API. */
export function encodeImportOptions(options: ImportOptions) {
  return {
    person_properties: options.overwritesPersons ? ('overwrite' as const) : ('keep' as const),
    first_touch_backdate: options.backdatesFirstTouch,
    geoip: options.looksUpGeoip,
    experiments: options.countsInExperiments,
  }
}

export interface ImportJob {
  /** The job number used in rows, partitions, marks and the staging overlay. Sequential, not a secret. */
  readonly id: number
  /** The id that clients use: `createPublicImportJobId`. For implicit jobs, to which no client sends, the job number. */
  readonly publicId: number
  readonly projectId: number
  /** Rows stored while the job was pending; a row repeated within a chunk counts once. Null for an implicit job. */
  readonly storedRows: number | null
  /** For an implicit job, the UTC day whose imports without a job it collects; null for a job that a client created. */
  readonly day: string | null
  readonly name: string
  readonly source: string
  readonly state: ImportJobState
  readonly step: ImportStep | null
  readonly options: ImportOptions
  readonly createdBy: Author | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** When publishing began to change persons and groups: the job's place in their history. */
  readonly publishBeganAtMs: number | null
  readonly publishedAtMs: number | null
  readonly discardedAtMs: number | null
  /** When the data needed to undo the job was deleted. Null while it can be undone. */
  readonly finalAtMs: number | null
  /** Set while publishing or discarding the job fails; null otherwise. */
  readonly failure: JobFailure | null
}

/** A job with the plan and progress that its client sent. */
export interface DescribedImportJob extends ImportJob {
  /** The plan: range, zone, hashes, tool version. Up to 64 KiB. */
  readonly plan: JsonObject
  /** The progress, shown unchanged. Publishing compares `verified_rows` with the stored rows. Up to 64 KiB. */
  readonly progress: JsonObject
}

/** The fields of a job that the worker needs to process the job's events. */
export interface ImportJobStatus {
  readonly id: number
  readonly projectId: number
  readonly state: ImportJobState
  readonly step: ImportStep | null
  /** Whether the job already has notes about its events. */
  readonly hasNotes: boolean
  readonly looksUpGeoip: boolean
}

export function isJobOpen(state: ImportJobState): state is OpenState {
  return (openStates as readonly string[]).includes(state)
}

/** Whether the job's events are kept separate: until publishing has processed the last of them. */
export function isJobPending({ state, step }: Pick<ImportJob, 'state' | 'step'>): boolean {
  // A failed job can be resumed, so it is discarded like an open job.
  return isJobOpen(state) || state === 'failed' || (state === 'publishing' && step === 'draining')
}

/**
 * The project id under which the persons and groups of a pending job are stored: the job's staging overlay. Real project ids
 * are never negative, so the two cannot mix.
 */
export function toStagingProjectId(importJobId: number): number {
  return -importJobId
}

/** The job whose rows are in a partition of events such as `7-202611`; null for live events and imports without a job. */
export function importJobOfPartition(partition: string): number | null {
  const id = Number(/^(\d+)-/.exec(partition)?.[1] ?? 0)
  return id >= firstImportJobId ? id : null
}

/** An implicit job collects the imports of one project and day that name no job. */
export interface ImplicitJob {
  readonly id: number
  /** The job collects events accepted up to this time, epoch ms; null for the job that is still collecting. */
  readonly untilMs: number | null
}

const until = ' until '

/** @param day the stored form: `YYYY-MM-DD`, followed by the job's end if it was discarded. */
export function parseImplicitJob(id: number, day: string): ImplicitJob {
  const at = day.indexOf(until)
  return { id, untilMs: at === -1 ? null : Number(day.slice(at + until.length)) }
}

/** The `day` to store for an implicit job that stops collecting now. */
export function formatDayOfEndedJob(day: string, nowMs: number): string {
  return `${day}${until}${nowMs}`
}

/** How many jobs of a project may be open at once: each has separate partitions and is a separate unit of work for the worker. */
export const openJobsMax = 50
/** How many jobs a project may create within 24 hours, including those discarded since. */
export const jobsPerDayMax = 500
/**
 * How many jobs of a project may be open or published: their rows stay in separate partitions for good. On the embedded
 * engine each job adds about 0.5 ms to listing its project's events, a twentieth of that to listing other projects' events,
 * and 35 KB of memory.
 */
export const keptJobsMax = 1_000
/** How many discarded jobs of a project stay listed (the latest ones). Their data is deleted. */
export const discardedJobsMax = 1_000

/** How often the implicit job of a project and day can be discarded: each time leaves a job behind for good. */
export const implicitDiscardsMax = 100

/** How long after publishing a job can be undone. Source: docs/wire/import.md §2.11. */
export const undoDays = 30
