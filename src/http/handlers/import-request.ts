// What is special about a `/batch/` that names an import job or asks for an import report: the job is checked, the
// answer says how fast to go on, and a worker that falls far behind asks importers alone to pause.

import type { FastifyReply } from 'fastify'
import { liveWindowMs } from '#core/events/live-window.ts'
import type { EventIdentity } from '#core/events/stored-event.ts'
import type { Project } from '#core/project.ts'
import type { ImportedRows } from '#ports/events/imported-rows.ts'
import { PortError } from '#ports/port-error.ts'
import type { AnswerReading } from '#services/capture/capture-outcome.ts'
import type { ImportPace } from '#services/imports/import-pace.ts'
import type { OpenJobs } from '#services/imports/open-jobs.ts'
import { inSlices } from '#services/shared/in-slices.ts'
import type { VerboseAnswer } from '#wire/capture/capture-verdicts.ts'
import type { PreparedCapture } from '#wire/capture/decode-capture.ts'
import { encodeImportReport, readImportReport } from '#wire/capture/import-report.ts'
import { type ImportRequest, importErrors, importRateHeader } from '#wire/capture/import-request.ts'
import type { WireError } from '#wire/wire-error.ts'

export interface ImportRequestDeps {
  readonly findProject: (token: string) => Project | null
  readonly openJobs: OpenJobs
  readonly pace: ImportPace
  readonly events: Pick<ImportedRows, 'countStored'>
}

/** Sets the rate, and says whether the importer has to pause. @returns the refusal, or null. */
export function paceImport({ pace }: ImportRequestDeps, reply: FastifyReply): WireError | null {
  reply.header(importRateHeader, String(pace.rate()))
  const pauseSeconds = pace.pauseSeconds()
  if (pauseSeconds === null) return null
  reply.header('retry-after', String(pauseSeconds))
  return importErrors.tooFast
}

/**
 * Why a prepared request is refused for its job; null when it is not, or when it will be refused for its key.
 * @throws PortError when the state cannot be asked.
 */
export async function refusedForJob(
  { findProject, openJobs }: ImportRequestDeps,
  { importJobId }: ImportRequest,
  prepared: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
): Promise<WireError | null> {
  if (importJobId === null) return null
  if (!prepared.historicalMigration) return importErrors.notHistorical
  const project = findProject(prepared.token)
  if (project === null) return null
  const answer = await openJobs.check(project.id, importJobId)
  return answer === 'open' ? null : answer === 'closed' ? importErrors.closedJob : importErrors.unknownJob
}

/**
 * Reads the report off the table. That an event is stored already is advice: when the store does not answer in time, or
 * would have to look for too many, only the repeats of the request itself are counted.
 */
export function reportReading(
  { findProject, events }: ImportRequestDeps,
  prepared: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
  receivedAtMs: number,
): AnswerReading<VerboseAnswer> {
  return async table => {
    const report = await inSlices(readImportReport(table, receivedAtMs - liveWindowMs))
    const project = findProject(prepared.token)
    const storedCount = project === null ? 0 : await countStored(events, project.id, report.identities)
    return { status: 200, body: encodeImportReport(report, storedCount) }
  }
}

/** What the importer sends at most; anybody with a project's public key can ask. */
const identitiesMax = 5_000

async function countStored(
  events: ImportRequestDeps['events'],
  projectId: number,
  identities: readonly EventIdentity[],
): Promise<number> {
  if (identities.length > identitiesMax) return 0
  return events.countStored(identities.map(identity => ({ ...identity, projectId }))).catch(ignoreStore)
}

function ignoreStore(cause: unknown): number {
  if (!(cause instanceof PortError)) throw cause
  return 0
}
