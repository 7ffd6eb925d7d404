// Handles a `/batch/` that names an import job or asks for an import report: checks the job, answers with the rate at which
// to send, and asks importers (but not live senders) to pause when the worker falls far behind.

import type { FastifyReply } from 'fastify'
import { liveWindowMs } from '#core/events/live-window.ts'
import { importBatchEventsMax, isJobOpen } from '#core/imports/import-job.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { BatchIdentities, ImportedRows } from '#ports/events/imported-rows.ts'
import { PortError } from '#ports/port-error.ts'
import type { AnswerCompletion, AnswerReading, CaptureOutcome } from '#services/capture/capture-outcome.ts'
import type { ImportPace } from '#services/imports/import-pace.ts'
import type { OpenJobs } from '#services/imports/open-jobs.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import { findSenderNetwork } from '#wire/address/client-address.ts'
import type { VerboseAnswer } from '#wire/capture/capture-verdicts.ts'
import type { PreparedCapture } from '#wire/capture/decode-capture.ts'
import {
  type BatchImportReport,
  encodeImportReport,
  readEventIdentities,
  readImportReport,
} from '#wire/capture/import-report.ts'
import { importErrors, importRateHeader } from '#wire/capture/import-request.ts'
import type { WireError } from '#wire/wire-error.ts'

export interface ImportRequestDeps {
  readonly findProject: (token: string) => Project | null
  readonly openJobs: OpenJobs
  readonly pace: ImportPace
  readonly events: Pick<ImportedRows, 'countStoredEvents'>
}

/** The job that a request names. */
export interface NamedJob {
  readonly id: number
  readonly projectId: number
  readonly publicId: number
  /** The sender's network, by which failed job lookups are counted. */
  readonly network: string
}

/** Sends the import rate, and asks the importer to pause if needed. @returns the refusal, or null. */
export function limitImportPace({ pace }: ImportRequestDeps, reply: FastifyReply, projectId: number): WireError | null {
  reply.header(importRateHeader, String(pace.rate(projectId)))
  const pauseSeconds = pace.pauseSeconds(projectId)
  if (pauseSeconds === null) return null
  reply.header('retry-after', String(pauseSeconds))
  return importErrors.tooFast
}

/**
 * Like `limitImportPace`, for a prepared request without a job: its project is known from its body. Live batches are never
 * paced, and an unknown key gets its own error.
 */
export function limitPreparedImportPace(
  deps: ImportRequestDeps,
  reply: FastifyReply,
  { token, historicalMigration }: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
): WireError | null {
  const project = historicalMigration ? deps.findProject(token) : null
  return project === null ? null : limitImportPace(deps, reply, project.id)
}

/** Finds the job that a request names, before the body is read. @throws PortError when the state cannot be read. */
export async function findNamedJob(
  { openJobs }: ImportRequestDeps,
  reply: FastifyReply,
  publicJobId: number,
  address: string,
): Promise<Result<NamedJob, WireError>> {
  // Limits guesses per network: one machine may own 2^64 IPv6 addresses and could use another for each guess.
  const network = findSenderNetwork(address)
  const job = await openJobs.find(publicJobId, network)
  if (job === 'too_many') return err(refuseTooManyUnknown(reply))
  return job === null
    ? err(importErrors.unknownJob)
    : ok({ id: job.id, projectId: job.projectId, publicId: publicJobId, network })
}

function refuseTooManyUnknown(reply: FastifyReply): WireError {
  reply.header('retry-after', '60')
  return importErrors.tooManyUnknown
}

/**
 * Returns the error if the job of a prepared request requires a refusal, otherwise null. Also null for an unknown key,
 * which is refused elsewhere. Checks the job's state again, since decoding may have taken a while. @throws PortError when
 * the state cannot be read.
 */
export async function findJobRefusal(
  { findProject, openJobs }: ImportRequestDeps,
  reply: FastifyReply,
  named: NamedJob,
  prepared: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
): Promise<WireError | null> {
  if (!prepared.historicalMigration) return importErrors.notHistorical
  const project = findProject(prepared.token)
  if (project === null) return null
  const job = await openJobs.find(named.publicId, named.network)
  if (job === 'too_many') return refuseTooManyUnknown(reply)
  if (job === null || project.id !== job.projectId) return importErrors.unknownJob
  return isJobOpen(job.state) ? null : importErrors.closedJob
}

/**
 * Uses the report of the decode thread, if it made one and the project key is known: nothing else can change the outcome of
 * an import after decoding.
 */
export function createImportReportReader(
  { findProject }: ImportRequestDeps,
  { token, historicalMigration, report }: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
  receivedAtMs: number,
): AnswerReading<BatchImportReport> {
  if (report !== undefined && historicalMigration && findProject(token) !== null) return () => report
  return table => runInSlices(readImportReport(table, computeRecentStartMs(receivedAtMs)))
}

/** Events from this time on are recent, in epoch ms. */
export function computeRecentStartMs(receivedAtMs: number): number {
  return receivedAtMs - liveWindowMs
}

/**
 * Counts as duplicates the events that are already stored. The count is advisory: when the store does not answer in time,
 * or would have to search for too many events, only repeats within the request are counted. Live events are not checked.
 */
export function createStoredEventCounter(
  { findProject, events }: ImportRequestDeps,
  { token, historicalMigration, table }: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
): AnswerCompletion<BatchImportReport> | undefined {
  const project = findProject(token)
  if (!historicalMigration || project === null) return undefined
  return async report => {
    const batch = { summary: report.events, listIdentities: () => runInSlices(readEventIdentities(table)) }
    const storedCount = await countStoredEvents(events, project.id, batch)
    return { ...report, duplicates: report.duplicates + storedCount }
  }
}

export function encodeReportOutcome(outcome: CaptureOutcome<BatchImportReport>): CaptureOutcome<VerboseAnswer> {
  return 'answer' in outcome
    ? { ...outcome, answer: { status: 200, body: encodeImportReport(outcome.answer) } }
    : outcome
}

async function countStoredEvents(
  events: ImportRequestDeps['events'],
  projectId: number,
  batch: BatchIdentities,
): Promise<number> {
  const { count } = batch.summary
  // Searches for a limited number of events, since anyone with a project's public key can request this count.
  if (count === 0 || count > importBatchEventsMax) return 0
  return events.countStoredEvents(projectId, batch).catch(ignoreStoreFailure)
}

function ignoreStoreFailure(cause: unknown): number {
  if (!(cause instanceof PortError)) throw cause
  return 0
}
