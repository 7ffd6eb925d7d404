// The job at the service that belongs to a job's folder: created once, told how far the importer is, published or
// discarded as a whole. Source: docs/wire/import.md §2.8, §2.11.

import type { JsonObject } from '#core/json.ts'
import { sleepUntil } from '../fetch/fetch-clock.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import { Type } from '../records/file-schema.ts'
import type { ServiceApi } from './job-api.ts'

export const serviceJobFile = 'service-job.json'
const endingFile = 'ending.json'

export interface ServiceJob {
  /** The number by which rows name it, too. */
  readonly id: string
  /** What batches send as X-Import-Job: whoever knows it can add events, so it is in no event. */
  readonly secretId: string
  readonly target: string
  readonly project: string
}

const serviceJobSchema = Type.Object({
  id: Type.String(),
  secretId: Type.String(),
  target: Type.String(),
  project: Type.String(),
})

/** How far an importer can say that it is; the others are the service's own. */
export type OpenJobState = 'planned' | 'rehearsed' | 'approved' | 'sending' | 'verifying' | 'pending'

export interface NewServiceJob {
  readonly name: string
  readonly source: string
  /** How its values meet those of live events. */
  readonly options?: JsonObject
  /** Whether a project that drops old events takes these. */
  readonly accept_old?: true
  /** Range, zone, hashes and version, as the service shows them. */
  readonly plan: JsonObject
}

export function readServiceJob(folder: JobFolder): ServiceJob | null {
  return folder.readJson(serviceJobFile, serviceJobSchema)
}

/** @param range of its events; null without any. */
export function jobName(source: string, range: { readonly first: string; readonly last: string } | null): string {
  if (range === null) return `${source} without events`
  const [first, last] = [range.first.slice(0, 10), range.last.slice(0, 10)]
  return first === last ? `${source} ${first}` : `${source} ${first} to ${last}`
}

/** What the service was last known to do with a job, for when it cannot be asked. */
export interface Ending {
  readonly serviceJobId: string
  readonly how: 'publish' | 'discard'
  readonly isDone: boolean
  /** ISO 8601, as the service says; absent before it is done. */
  readonly at?: string
}

const endingSchema = Type.Object({
  serviceJobId: Type.String(),
  how: Type.Enum(['publish', 'discard']),
  isDone: Type.Boolean(),
  at: Type.Optional(Type.String()),
})

export function keepEnding(folder: JobFolder, ending: Ending): void {
  folder.writeJson(endingFile, ending)
}

/** @returns null for a job that was neither published nor discarded from this folder. */
export function readEnding(folder: JobFolder): Ending | null {
  return folder.readJson(endingFile, endingSchema)
}

/** A crash between the two leaves an empty job at the service, which does nothing. */
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
  folder.writeJson(serviceJobFile, made)
  return made
}

export async function stateOf(api: ServiceApi, id: string): Promise<string> {
  return String((await api.call('GET', `/import_jobs/${id}/`)).state)
}

/** When a job was published or discarded; null where the service does not say. @returns ISO 8601. */
export async function endedAt(api: ServiceApi, id: string, how: Ending['how']): Promise<string | null> {
  const at = (await api.call('GET', `/import_jobs/${id}/`))[`${ends[how]}_at`]
  return typeof at === 'string' ? at : null
}

export async function reportState(
  api: ServiceApi,
  id: string,
  state: OpenJobState,
  progress?: JsonObject,
): Promise<void> {
  await api.call('PATCH', `/import_jobs/${id}/`, { body: { state, ...(progress === undefined ? {} : { progress }) } })
}

const pollMs = 1_000
const ends = { publish: 'published', discard: 'discarded' } as const

/** What a person who waits for the end of a job wants to hear of it. */
export interface EndReporter {
  /** From here on the service may have begun. */
  readonly onAsked?: () => void
  /** The service does it now, whoever waits for it. */
  readonly onAccepted?: () => void
  /** What the service is at. */
  readonly onStep?: (step: string | null) => void
}

/**
 * Publishes or discards the whole job and waits until that is done; asked again, it waits for what runs already.
 * @throws JobStopped when it cannot be, as for a job that was discarded.
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
    const untilMs = api.clock.nowMs() + pollMs
    await sleepUntil(api.clock, () => untilMs, api.signal)
  }
}
