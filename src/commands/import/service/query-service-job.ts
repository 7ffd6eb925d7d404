// Asks the service for the state of a job, once and for a few seconds at most, since looking at a job must work without the
// service too. Source: docs/wire/import.md §2.8.

import { undoDays } from '#core/imports/import-job.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { readServiceJob } from '#importer/send/service-job.ts'
import { type JobOfFolder, queryJobTarget } from './target-api.ts'

const timeoutMs = 5_000

type ServiceState = ReturnType<typeof toServiceState>

/** What the service says about a job, or why it did not answer; null before anything was sent. */
export type ServiceAnswer = ServiceState | { readonly id: string; readonly unknownBecause: string } | null

export async function queryServiceJob({ folder, plan }: JobOfFolder): Promise<ServiceAnswer> {
  const known = readServiceJob(folder)
  if (known === null || plan.target === null) return null
  const { id, project } = known
  const noKey = 'set PENNON_PERSONAL_KEY to a personal key with the scope import_job:read'
  const answer = await queryJobTarget({ folder, plan }, { project, timeoutMs, noKey }, api =>
    api.get(`/import_jobs/${encodeURIComponent(id)}/`),
  )
  return answer.ok ? toServiceState(id, answer.value) : { id, unknownBecause: answer.error }
}

function toServiceState(id: string, { state, step, published_at, discarded_at, failure }: JsonObject) {
  const readText = (value: unknown) => (typeof value === 'string' ? value : null)
  return {
    id,
    /** One of `planned rehearsed approved sending verifying pending publishing published discarding discarded failed`. */
    state: String(state),
    /** The current step of publishing or discarding. */
    step: readText(step),
    publishedAt: readText(published_at),
    discardedAt: readText(discarded_at),
    failure: readFailure(failure),
  }
}

/** Why publishing or discarding waits; null while it progresses, and from services that do not report it. */
function readFailure(value: JsonValue | undefined) {
  if (!isJsonObject(value)) return null
  const { code, message, since } = value as JsonObject
  return { code: String(code), message: String(message), since: String(since) }
}

/** The day until which a published job can be undone. @param publishedAt ISO 8601. @returns a UTC day. */
export function describeUndoLimit(publishedAt: string): string {
  return new Date(Date.parse(publishedAt) + undoDays * 86_400_000).toISOString().slice(0, 10)
}

function describeFailure(failure: ServiceState['failure']): string {
  return failure === null
    ? ''
    : ` Stalled since ${failure.since}, retrying automatically: ${failure.message} (${failure.code}).`
}

/**
 * What to show for states in which the importer works: the service knows only the last reported state, not whether it runs.
 */
const openStateLabels: Readonly<Record<string, string>> = {
  sending: 'waiting for more events',
  verifying: 'not verified yet',
}

/** @returns a line for people. */
export function describeServiceState(answer: NonNullable<ServiceAnswer>): string {
  const job = `Import job ${answer.id} in the service`
  if ('unknownBecause' in answer) return `${job}: state unknown: ${answer.unknownBecause}`
  const { state, step, publishedAt, discardedAt, failure } = answer
  switch (state) {
    case 'publishing':
    case 'discarding':
      return `${job}: ${state}${step === null ? '' : ` (${step})`}.${describeFailure(failure)}`
    case 'published':
      return `${job}: published${publishedAt === null ? '' : ` ${publishedAt}; it can be undone until ${describeUndoLimit(publishedAt)}`}.`
    case 'discarded':
      return `${job}: discarded${discardedAt === null ? '' : ` ${discardedAt}`}.`
    case 'failed':
      return `${job}: failed.`
    default:
      return `${job}: ${openStateLabels[state] ?? state}; nothing is visible until it is published.`
  }
}
