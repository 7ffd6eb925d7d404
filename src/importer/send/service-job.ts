// The service's counterpart of the job in the folder: created once, updated with the importer's progress, published or
// discarded as a whole. Source: docs/wire/import.md §2.8, §2.11.

import type { JsonObject } from '#core/json.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import { createStateAccessors } from '../job/job-state.ts'
import { countBlankLines, type Manifest } from '../job/manifest.ts'
import { type Checkpoint, sumProgress } from './checkpoint.ts'
import { countRepairedRejects, type RetryOutcomes, sumRetryOutcomes } from './retry-outcomes.ts'
import type { ServiceApi } from './service-api.ts'

export interface ServiceJob {
  /** The job's number, which the service also stores with the job's events. */
  readonly id: string
  /** Sent with batches as X-Import-Job. It allows adding events to the job, so it is not written into events. */
  readonly secretId: string
  readonly target: string
  readonly project: string
}

/** The states that an importer may report; the service sets the other states itself. */
export type OpenJobState = 'planned' | 'rehearsed' | 'approved' | 'sending' | 'verifying' | 'pending'

export interface NewServiceJob {
  readonly name: string
  readonly source: string
  /** How imported values combine with live values. */
  readonly options?: JsonObject
  /** Accept the events even if the project drops old ones. */
  readonly accept_old?: true
  /** Time range, time zone, hashes and version, which the service shows. */
  readonly plan: JsonObject
}

export const [readServiceJob, storeServiceJob] = createStateAccessors<ServiceJob>('service job')

/** @param range times of the job's first and last event; null if the job has no events. */
export function formatJobName(source: string, range: { readonly first: string; readonly last: string } | null): string {
  if (range === null) return `${source} without events`
  const [first, last] = [range.first.slice(0, 10), range.last.slice(0, 10)]
  return first === last ? `${source} ${first}` : `${source} ${first} to ${last}`
}

/** How a job ended, as the service last reported it. Used when the service cannot be asked. */
export interface JobEnding {
  readonly serviceJobId: string
  readonly how: 'publish' | 'discard'
  readonly isDone: boolean
  /** When the job was published or discarded, by the service's clock, ISO 8601; absent until then. */
  readonly at?: string
}

/** Read and store how the job ended; null if it was neither published nor discarded from this folder. */
export const [readEnding, storeEnding] = createStateAccessors<JobEnding>('ending')

/** A crash before the service's job is stored here leaves an empty job at the service, which does no harm. */
export async function ensureServiceJob(
  folder: JobFolder,
  api: ServiceApi,
  target: Omit<ServiceJob, 'id' | 'secretId'>,
  job: NewServiceJob,
): Promise<ServiceJob> {
  const known = readServiceJob(folder)
  if (known !== null) return known
  const created = await api.call('POST', '/import_jobs/', { body: { ...job } })
  const made = { id: String(created.number), secretId: String(created.id), ...target }
  storeServiceJob(folder, made)
  return made
}

export async function readServiceState(api: ServiceApi, id: string): Promise<string> {
  return String((await api.call('GET', `/import_jobs/${id}/`)).state)
}

/** @returns when the job was published or discarded, ISO 8601; null if the service does not say. */
export async function readJobEndTime(api: ServiceApi, id: string, how: JobEnding['how']): Promise<string | null> {
  const at = (await api.call('GET', `/import_jobs/${id}/`))[`${ends[how]}_at`]
  return typeof at === 'string' ? at : null
}

export async function reportJobState(
  api: ServiceApi,
  id: string,
  state: OpenJobState,
  progress?: JsonObject,
): Promise<void> {
  await api.call('PATCH', `/import_jobs/${id}/`, { body: { state, ...(progress === undefined ? {} : { progress }) } })
}

/**
 * The figures that the service shows in its list of jobs. `sent` counts events, including the events of groups and links. A
 * rejected record that was repaired and sent no longer counts as rejected.
 */
export function computeProgressFigures(
  checkpoint: Checkpoint | null,
  manifest: Manifest,
  retried: RetryOutcomes,
): JsonObject {
  const { records, generated } = sumProgress(checkpoint?.parts ?? [])
  return {
    records: records.read + countBlankLines(manifest),
    sent: records.sent + generated.sent + sumRetryOutcomes(retried).sent,
    rejected: Math.max(0, records.rejected - countRepairedRejects(retried)),
  }
}

const pollMs = 1_000
const ends = { publish: 'published', discard: 'discarded' } as const

/** Callbacks for a user who waits while a job is published or discarded. */
export interface EndReporter {
  /** Called just before the request is sent, since from then on the service may have begun. */
  readonly onAsked?: () => void
  /** Called once the service has accepted the request: from then on it finishes even if the client disconnects. */
  readonly onAccepted?: () => void
  /** Called with the service's current step. */
  readonly onStep?: (step: string | null) => void
}

/**
 * Publishes or discards the whole job and waits until that is done. If that is already under way, only waits for it.
 * @throws JobStopped if it is not possible, for example to publish a discarded job.
 */
export async function endServiceJob(
  api: ServiceApi,
  id: string,
  how: 'publish' | 'discard',
  { onAsked, onAccepted, onStep }: EndReporter = {},
): Promise<void> {
  onAsked?.()
  await api.call('POST', `/import_jobs/${id}/${how}/`)
  onAccepted?.()
  for (;;) {
    const { state, step } = await api.call('GET', `/import_jobs/${id}/`)
    if (state === ends[how]) return
    if (state === 'failed') throw new JobStopped(`the service could not ${how} import job ${id}; its log says why`)
    onStep?.(typeof step === 'string' ? step : null)
    await api.pause(pollMs)
  }
}

const reportEveryMs = 10_000

/** Reports progress every ten seconds, without delaying the work that it reports. */
export class ProgressReporter {
  readonly #report: () => Promise<void>
  readonly #nowMs: () => number
  #reporting: Promise<void> | null = null
  #reportedMs: number

  constructor(report: () => Promise<void>, nowMs: () => number) {
    this.#report = report
    this.#nowMs = nowMs
    this.#reportedMs = nowMs()
  }

  /** Call whenever the work has progressed; reports at most every ten seconds. */
  moved(): void {
    if (this.#reporting !== null || this.#nowMs() - this.#reportedMs < reportEveryMs) return
    this.#reportedMs = this.#nowMs()
    this.#reporting = this.#report()
      // A failed report is ignored: the report of the next change of state is awaited, and would fail too.
      .catch(() => undefined)
      .finally(() => {
        this.#reporting = null
      })
  }

  /** Resolves once no report is under way that could arrive after the next change of state. */
  async ended(): Promise<void> {
    await this.#reporting
  }
}
