// The headers of a `/batch/` that belongs to an import job or asks for an import report.
// Source: docs/wire/import.md §2.11, §3.11.

import { firstImportJobId, importJobHeader } from '#core/imports/import-job.ts'
import { err, ok, type Result } from '#core/result.ts'
import { type WireError, wireError } from '../wire-error.ts'

/** Asks for counts and for each refused item, so that one such item does not refuse the whole request. */
export const importReportHeader = 'x-import-report'
/** In answers: how many events per second an importer may send. */
export const importRateHeader = 'x-import-rate'

export interface ImportRequest {
  /** The id that the service gave to the job; null for an import without one. */
  readonly publicJobId: number | null
  readonly wantsReport: boolean
}

export const importErrors = {
  invalidJob: wireError(400, 'invalid_import_job', 'X-Import-Job must be the id of an import job', importJobHeader),
  notHistorical: wireError(
    400,
    'not_historical',
    'X-Import-Job is for batches with "historical_migration": true',
    'historical_migration',
  ),
  unknownJob: wireError(
    404,
    'unknown_import_job',
    'the project has no import job with this id: create one with POST /api/projects/:id/import_jobs/',
    importJobHeader,
  ),
  closedJob: wireError(
    409,
    'import_job_closed',
    'the import job accepts no more events: it is published or discarded, or about to be',
    importJobHeader,
  ),
  tooManyUnknown: wireError(
    429,
    'too_many_unknown_import_jobs',
    'too many requests from this IP address with unknown import jobs: retry after Retry-After seconds',
    importJobHeader,
  ),
  tooFast: wireError(
    429,
    'import_too_fast',
    'too many imports are waiting to be processed: retry after Retry-After seconds',
  ),
} as const

/** @returns null for a request without these headers, which is nearly every one. */
export function parseImportRequest(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Result<ImportRequest, WireError> | null {
  const job = headers[importJobHeader]
  const report = headers[importReportHeader]
  if (job === undefined && report === undefined) return null
  const wantsReport = report === '1'
  if (job === undefined) return ok({ publicJobId: null, wantsReport })
  const publicJobId = typeof job === 'string' && /^[1-9]\d{0,15}$/.test(job) ? Number(job) : 0
  if (publicJobId < firstImportJobId || !Number.isSafeInteger(publicJobId)) return err(importErrors.invalidJob)
  return ok({ publicJobId, wantsReport })
}
