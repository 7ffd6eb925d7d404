// What all exports share: parameters, the number of exports at a time, and the answer, which begins only with the first
// rows, so that earlier failures are ordinary errors.

import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import type { OpenParquetFile } from '#ports/parquet-files.ts'
import { PortError } from '#ports/port-error.ts'
import { type ExportProgress, ExportStopped, runExport } from '#services/exports/run-export.ts'
import {
  type ExportBreak,
  type ExportColumn,
  type ExportEncoder,
  type ExportFormat,
  exportFormats,
} from '#wire/exports/export-column.ts'
import { createCsvEncoder, createJsonlEncoder } from '#wire/exports/text-formats.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { type Answer, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import type { ProjectCall, StreamAnswer } from '../kit/endpoint.ts'
import { addDefaultValue, enumParam, type QuerySpec, unsupportedParam, wholeNumberParam } from '../kit/query-params.ts'
import { accessEndDetails, findAccessLossReason, streamHeaders } from '../kit/stream-answers.ts'
import { acceptsGzip, openExportResponse } from './export-target.ts'
import { createParquetEncoder } from './parquet-encoder.ts'

export const unlimited = Number.MAX_SAFE_INTEGER

/** The query parameters of every export, in addition to the list's filters. */
export const exportParams = {
  format: addDefaultValue(enumParam(exportFormats, 'Default: jsonl.'), 'jsonl'),
  limit: addDefaultValue(
    wholeNumberParam({
      description: 'Maximum number of rows. The export ends with a cursor for the rest.',
      minimum: 1,
    }),
    unlimited,
  ),
  offset: unsupportedParam('use cursor to continue an export.'),
}

/** The answer of every export, as the API document describes it. */
export const exportSuccess = {
  status: 200,
  contentType: 'application/x-ndjson',
  schema: Type.String({ description: 'JSON lines, CSV (text/csv) or Parquet, by `format`.' }),
}

export interface ExportToAnswer<Row> {
  /** Prefix of the file name. */
  readonly name: string
  readonly scope: string
  readonly limit: number
  /** Headers in addition to those of every export. */
  readonly headers?: Readonly<Record<string, string>>
  readonly columns: readonly ExportColumn<Row>[]
  readonly format: ExportFormat
  readonly cursorOf: (row: Row) => string
  /** Starts reading. @throws PortError */
  readonly open: () => Promise<{
    readonly batches: AsyncIterable<Iterable<Row>>
    /** The maximum number of rows, if known; otherwise null. */
    readonly rowCountMax: number | null
  }>
}

export async function answerExport<Row>(
  deps: ManagementDeps,
  call: ProjectCall<QuerySpec, unknown>,
  asked: ExportToAnswer<Row>,
): Promise<Answer | StreamAnswer> {
  const { project, request, signal } = call
  const encoder = createEncoder(asked, deps.openParquetFile)
  const day = new Date(deps.clock.nowMs()).toISOString().slice(0, 10)
  const headers = {
    ...asked.headers,
    'content-type': encoder.contentType,
    'content-disposition': `attachment; filename="${asked.name}-project${project.id}-${day}.${asked.format}"`,
    ...streamHeaders,
    vary: 'accept-encoding',
  }
  if (request.method === 'HEAD') return { stream: reply => void reply.code(200).headers(headers).send() }
  const entered = deps.exportPlaces.enter(project.id)
  if (!entered.ok) return { ...refusal(refusals[entered.error]), retryAfterSeconds: 30 }
  const place = entered.value
  try {
    const { batches, rowCountMax } = await asked.open()
    const reader = batches[Symbol.asyncIterator]()
    const first = await reader.next()
    return {
      stream: reply => {
        reply.hijack()
        const isGzip = encoder.isText && acceptsGzip(request.headers['accept-encoding'])
        const most = rowCountMax === null ? {} : { 'pennon-export-at-most': String(Math.min(rowCountMax, asked.limit)) }
        void writeExport(reply, { ...headers, ...most }, isGzip, continueFrom(first, reader)).finally(place.leave)
      },
    }
  } catch (error) {
    place.leave()
    throw error
  }

  async function writeExport(
    reply: FastifyReply,
    ownHeaders: Record<string, string>,
    isGzip: boolean,
    batches: AsyncIterator<Iterable<Row>>,
  ): Promise<void> {
    const response = openExportResponse(reply.raw, {
      headers: { ...(reply.getHeaders() as Record<string, string>), ...ownHeaders },
      isGzip,
      signal,
      place,
    })
    const progress: ExportProgress = { rowCount: 0, cursor: null }
    try {
      const { limit, cursorOf } = asked
      const next = await runExport({
        batches,
        encoding: encoder,
        target: response,
        findStopReason: () => findAccessLossReason(deps, call, asked.scope),
        ...{ limit, cursorOf, progress },
      })
      await response.end({
        'pennon-export-count': String(progress.rowCount),
        'pennon-export-cursor': progress.cursor ?? '',
        'pennon-export-next': next ?? '',
      })
    } catch (error) {
      const reason = toExportBreak(error, progress)
      const isGone = signal.aborted
      const { rowCount } = progress
      if (!isGone)
        deps.logger.warn(
          { err: error, requestId: request.id, projectId: project.id, rowCount, path: request.routeOptions.url },
          'export aborted',
        )
      await response.breakOff(isGone ? null : encoder.brokenOff(reason))
    } finally {
      encoder.close?.()
      await batches.return?.()
    }
  }
}

async function* continueFrom<T>(first: IteratorResult<T>, rest: AsyncIterator<T>): AsyncGenerator<T> {
  for (let step = first; step.done !== true; step = await rest.next()) yield step.value
}

const stopDetails: Readonly<Record<ExportStopped['code'], string>> = {
  ...accessEndDetails,
  too_slow: 'The client stopped reading for too long.',
}

function toExportBreak(error: unknown, { cursor }: ExportProgress): ExportBreak {
  const goOn = cursor === null ? 'Repeat the request.' : 'Repeat the request with this cursor for the remaining rows.'
  if (error instanceof ExportStopped) {
    const detail = stopDetails[error.code]
    return { code: error.code, detail: error.code === 'too_slow' ? `${detail} ${goOn}` : detail, cursor }
  }
  if (error instanceof PortError) {
    const store = error.port === 'event-store' ? 'event store' : 'state'
    return {
      code: `${store.replace(' ', '_')}_${error.code}`,
      detail: `The ${store} failed during the export. ${goOn}`,
      cursor,
    }
  }
  return { code: 'error', detail: `The export failed before it was complete. ${goOn}`, cursor }
}

const refusals: Record<'full' | 'project_full', WireError> = {
  full: wireError(
    503,
    'too_many_exports',
    'This instance is running its maximum number of exports. Try again when one of them has ended.',
  ),
  project_full: wireError(
    429,
    'too_many_exports',
    'This project is running its maximum number of exports. Try again when one of them has ended.',
  ),
}

function createEncoder<Row>(
  { format, columns }: ExportToAnswer<Row>,
  openParquetFile: OpenParquetFile,
): ExportEncoder<Row> {
  switch (format) {
    case 'jsonl':
      return createJsonlEncoder(columns)
    case 'csv':
      return createCsvEncoder(columns)
    case 'parquet':
      return createParquetEncoder(columns, openParquetFile)
  }
}
