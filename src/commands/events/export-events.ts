// `pennon events export`: a download that can be resumed, and whose file gets its name only when it is complete.

import { formatCount } from '#core/format-count.ts'
import type { PrivateApi, UrlQuery } from '../client/private-api.ts'
import { ClientError } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { formatBytes } from '../format-bytes.ts'
import { createExportProgress } from './export-progress.ts'
import { isParquetExportComplete } from './parquet-footer.ts'
import {
  completePartialFile,
  createPartialFile,
  discardPartialFile,
  type ExportRequest,
  type FileFormat,
  type PartialFile,
  partialPath,
  readExportRequest,
  reopenPartialFile,
  writeExportRequest,
} from './partial-file.ts'
import { RowScanner } from './row-scanner.ts'

export interface ExportOptions extends ClientOptions {
  readonly format?: FileFormat
  readonly event?: string
  readonly distinctId?: string
  readonly personId?: string
  readonly uuid?: string
  readonly property?: readonly string[]
  readonly from?: string
  readonly to?: string
  readonly oldestFirst?: boolean
  readonly limit?: string
  readonly resume?: boolean
  readonly force?: boolean
}

/** After Ctrl-C. */
const interruptedExitCode = 130

export function exportEvents(file: string, options: ExportOptions): Promise<void> {
  const runCommand = async (api: PrivateApi) => {
    const stop = new AbortController()
    process.once('SIGINT', () => stop.abort())
    const request = options.resume === true ? readRequestToResume(file, api) : createRequest(file, options, api)
    const part =
      options.resume === true
        ? await reopenPartialFile(file, request)
        : await createPartialFile(file, request, options.force === true)
    const written = { rowCount: part.rowCount, bytes: part.bytes }
    try {
      const isAtLimit = await download(api, file, request, part, written, stop.signal)
      if (request.format === 'parquet' && request.limit === null && !(await isParquetExportComplete(partialPath(file))))
        throw new ClientError(`The export is too large for one Parquet file: split it with --from and --to.`)
      await completePartialFile(file, part.handle)
      printResult(file, request, written, isAtLimit, options.json === true)
    } catch (error) {
      // The download's error is reported; if the file could not be closed either, the report says that, too.
      const unclosed = await part.handle.close().then(
        () => null,
        (cause: Error) => cause,
      )
      const isEmpty = options.resume !== true && written.bytes === 0
      if (isEmpty) await discardPartialFile(file)
      const left = isEmpty ? '' : ` ${describePartialFile(file, request.format, written.rowCount, unclosed)}`
      if (stop.signal.aborted) {
        process.stderr.write(`pennon: stopped.${left}\n`)
        process.exit(interruptedExitCode)
      }
      if (error instanceof ClientError && (isEmpty || error.status !== null)) throw error
      throw new ClientError(`${explainFailure(error, file)}${left}`, { exitCode: 1 })
    }
  }
  return runClient(options, 'query:read', runCommand, { after: '--from', before: '--to', properties: '--property' })
}

function readRequestToResume(file: string, api: PrivateApi): ExportRequest {
  const request = readExportRequest(file)
  if (request.instance === api.instance && request.project === api.project) return request
  throw new ClientError(
    `${partialPath(file)} belongs to project ${request.project} at ${request.instance}: set these with --project and --host.`,
  )
}

function createRequest(file: string, options: ExportOptions, api: PrivateApi): ExportRequest {
  const format = options.format ?? detectFormat(file)
  const { event, distinctId, personId, uuid, from, to, limit } = options
  if (limit !== undefined && !/^[1-9]\d{0,14}$/.test(limit))
    throw new ClientError('--limit must be a whole number above 0.')
  // Refuse empty values: the instance would treat them as absent, and send all events.
  for (const [name, value] of Object.entries({
    event,
    'distinct-id': distinctId,
    'person-id': personId,
    uuid,
    from,
    to,
  }))
    if (value === '') throw new ClientError(`--${name} must not be empty.`)
  const query: UrlQuery = {
    ...{ event, distinct_id: distinctId, person_id: personId, uuid, after: from, before: to },
    properties: options.property === undefined ? undefined : JSON.stringify(options.property.map(parsePropertyOption)),
    orderBy: options.oldestFirst === true ? 'timestamp' : undefined,
  }
  return {
    instance: api.instance,
    project: api.project,
    format,
    query,
    limit: limit === undefined ? null : Number(limit),
  }
}

function detectFormat(file: string): FileFormat {
  const end = /\.(jsonl|ndjson|csv|parquet)$/i.exec(file)?.[1]?.toLowerCase()
  if (end === undefined)
    throw new ClientError(`Unknown format of ${file}: end its name in .jsonl, .csv or .parquet, or set --format.`)
  return end === 'ndjson' ? 'jsonl' : (end as FileFormat)
}

/** Reads numbers and booleans as JSON, and everything else as text. */
function parsePropertyOption(text: string): { key: string; value: unknown } {
  const at = text.indexOf('=')
  if (at < 1) throw new ClientError('--property must be key=value, such as plan=pro.')
  const [key, value] = [text.slice(0, at), text.slice(at + 1)]
  return { key, value: /^(true|false|-?\d+(\.\d+)?)$/.test(value) ? JSON.parse(value) : value }
}

/**
 * @param written counts, updated as bytes arrive, so that they are correct even if the download fails.
 * @returns whether the limit ended the download.
 */
async function download(
  api: PrivateApi,
  file: string,
  request: ExportRequest,
  part: PartialFile,
  written: { rowCount: number; bytes: number },
  signal: AbortSignal,
): Promise<boolean> {
  const { format, query, limit } = request
  const left = limit === null ? undefined : limit - part.rowCount
  if (left !== undefined && left <= 0) return true
  const response = await api.open(
    '/events/export/',
    { ...query, format, limit: left, cursor: part.cursor ?? undefined },
    signal,
  )
  // Store relative times as instants: when the export is resumed, `-7d` would mean another time.
  const [after, before] = ['after', 'before'].map(name => response.headers.get(`pennon-export-${name}`) ?? undefined)
  await writeExportRequest(file, { ...request, query: { ...query, after, before } })
  const most = response.headers.get('pennon-export-at-most')
  const progress = createExportProgress({
    write: text => void process.stderr.write(text),
    isTerminal: process.stderr.isTTY === true,
    monotonicNowMs: () => performance.now(),
    rowCountMax: most === null ? null : Number(most),
  })
  const scanner = format === 'parquet' ? null : new RowScanner(format)
  // A resumed CSV download starts with the header line again; the second header is left out.
  let headerIsAhead = format === 'csv' && part.cursor !== null
  const headers = format === 'csv' ? 1 : 0
  let received = 0
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      scanner?.scan(chunk)
      received += chunk.length
      let bytes = chunk
      if (headerIsAhead) {
        const end = bytes.indexOf(0x0a)
        headerIsAhead = end === -1
        bytes = end === -1 ? bytes.subarray(bytes.length) : bytes.subarray(end + 1)
      }
      await writeAll(part, bytes, written)
      const rows = Math.max(0, (scanner?.rowCount ?? 0) - headers)
      written.rowCount = part.rowCount + rows
      progress.show(scanner === null ? null : rows, received)
    }
  } finally {
    progress.end()
  }
  return limit !== null && written.rowCount >= limit
}

async function writeAll({ handle }: PartialFile, bytes: Uint8Array, written: { bytes: number }): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, written.bytes)
    at += bytesWritten
    written.bytes += bytesWritten
  }
}

function printResult(
  file: string,
  request: ExportRequest,
  written: { rowCount: number; bytes: number },
  isTruncated: boolean,
  isJson: boolean,
) {
  const { format, limit } = request
  const isParquet = format === 'parquet'
  const rows = isParquet ? null : written.rowCount
  if (isJson) {
    // Rows of Parquet are not counted here, so whether the limit ended the download is unknown.
    const limited = isParquet && limit !== null ? null : isTruncated
    process.stdout.write(`${JSON.stringify({ file, format, rows, bytes: written.bytes, limited })}\n`)
    return
  }
  const what = rows === null ? '' : `${formatCount(rows, 'row')}, `
  const most = isParquet && limit !== null ? `, at most ${formatCount(limit, 'row')}` : ''
  const cut = isTruncated ? ', the maximum set by --limit' : most
  process.stdout.write(`${file}: ${what}${formatBytes(written.bytes)}${cut}\n`)
}

function describePartialFile(file: string, format: FileFormat, rowCount: number, unclosed: Error | null): string {
  const part = partialPath(file)
  if (format === 'parquet') return `${part} cannot be resumed: start again with --force.`
  return `${describeUnfinishedExport(rowCount, part, unclosed)} Continue with: pennon events export ${quoteFile(file)} --resume`
}

/**
 * Describes the file of an incomplete download. @param unclosed why the file could not be closed: then its last rows may be
 * lost, which is harmless, since resuming counts the rows in the file again.
 */
export function describeUnfinishedExport(rowCount: number, part: string, unclosed: Error | null): string {
  const rows = `${formatCount(rowCount, 'row is', 'rows are')} in ${part}`
  return unclosed === null ? `${rows}.` : `${rows}, or fewer: the file could not be closed (${unclosed.message}).`
}

function explainFailure(error: unknown, file: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return `The disk of ${file} is full. Free disk space for the rest.`
  if (error instanceof ClientError) return message
  const cause = (error as Error).cause
  return `The download was interrupted (${cause instanceof Error ? cause.message : message}).`
}

function quoteFile(file: string): string {
  return /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", `'\\''`)}'`
}
