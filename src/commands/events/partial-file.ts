// The files of an incomplete export: `FILE.part`, and `FILE.part.json` with its options.

import { constants, existsSync, readFileSync } from 'node:fs'
import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises'
import { ClientError, type UrlQuery } from '../client/private-api.ts'
import { RowScanner } from './row-scanner.ts'

export type FileFormat = 'jsonl' | 'csv' | 'parquet'

/** The options that an export was begun with, for resuming it. */
export interface ExportRequest {
  readonly instance: string
  readonly project: string
  readonly format: FileFormat
  /** The query parameters without cursor and limit; time bounds are instants. */
  readonly query: UrlQuery
  readonly limit: number | null
}

export interface PartialFile {
  readonly handle: FileHandle
  /** The number of whole rows in the file, not counting a header. */
  readonly rowCount: number
  /** The cursor after the last whole row; null without rows. */
  readonly cursor: string | null
  readonly bytes: number
}

export const partialPath = (file: string) => `${file}.part`
export const requestPath = (file: string) => `${file}.part.json`

/** @throws ClientError if the final or the partial file exists already, unless `force` is set. */
export async function createPartialFile(
  file: string,
  { format }: Pick<ExportRequest, 'format'>,
  force: boolean,
): Promise<PartialFile> {
  if (!force && existsSync(file)) throw new ClientError(`${file} already exists. Use --force to overwrite it.`)
  if (!force && existsSync(partialPath(file)))
    throw new ClientError(
      `An export to ${file} was interrupted: ${partialPath(file)} has the rows received so far. ${format === 'parquet' ? 'Use ' : 'Use --resume to continue, or '}--force to start again.`,
    )
  await discardPartialFile(file)
  const handle = await openFile(partialPath(file), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL)
  return { handle, rowCount: 0, cursor: null, bytes: 0 }
}

/** Removes the files of an incomplete export that will not be resumed. */
export async function discardPartialFile(file: string): Promise<void> {
  await rm(partialPath(file), { force: true })
  await rm(requestPath(file), { force: true })
}

export async function writeExportRequest(file: string, request: ExportRequest): Promise<void> {
  const next = `${requestPath(file)}.next`
  await rm(next, { force: true })
  await writeFile(next, `${JSON.stringify(request, null, 2)}\n`, { flag: 'wx' })
  await rename(next, requestPath(file))
}

/** @throws ClientError if there is nothing to resume. */
export function readExportRequest(file: string): ExportRequest {
  if (!existsSync(partialPath(file)))
    throw new ClientError(
      existsSync(file)
        ? `${file} is complete: there is nothing to resume.`
        : `There is no ${partialPath(file)} to resume. Run the export without --resume.`,
    )
  try {
    return JSON.parse(readFileSync(requestPath(file), 'utf8')) as ExportRequest
  } catch {
    throw new ClientError(
      `${requestPath(file)}, which stores the options of the export, is unreadable. Use --force to start again.`,
    )
  }
}

/** Opens the partial file and truncates it after its last whole row. @throws ClientError */
export async function reopenPartialFile(file: string, { format }: ExportRequest): Promise<PartialFile> {
  if (format === 'parquet')
    throw new ClientError(
      `An interrupted Parquet export cannot be resumed. Use --force to start again, with --limit for smaller files, or export jsonl.`,
    )
  const handle = await openFile(partialPath(file), constants.O_RDWR | constants.O_NOFOLLOW)
  const scanner = new RowScanner(format)
  for await (const bytes of handle.createReadStream({ start: 0, autoClose: false })) scanner.scan(bytes as Buffer)
  const last = Buffer.alloc(scanner.lastEnd - scanner.lastStart)
  await handle.read(last, 0, last.length, scanner.lastStart)
  const end = format === 'csv' ? findCsvEnd(scanner, last.toString()) : findLinesEnd(scanner, last.toString(), file)
  await handle.truncate(end.bytes)
  return { handle, ...end }
}

type End = Omit<PartialFile, 'handle'>

/** `rowCount` includes the header. If a file has only a header, the download starts again. */
function findCsvEnd({ rowCount, lastEnd }: RowScanner, last: string): End {
  if (rowCount <= 1) return { rowCount: 0, cursor: null, bytes: 0 }
  return { rowCount: rowCount - 1, cursor: last.slice(0, last.indexOf(',')), bytes: lastEnd }
}

/** The last line may be an error, with the cursor from which to resume. */
function findLinesEnd({ rowCount, lastStart, lastEnd }: RowScanner, last: string, file: string): End {
  if (rowCount === 0) return { rowCount: 0, cursor: null, bytes: 0 }
  const row = parseLine(last)
  if (row?.export_error !== undefined)
    return { rowCount: rowCount - 1, cursor: row.export_error.cursor, bytes: lastStart }
  if (typeof row?.cursor !== 'string')
    throw new ClientError(`The last line of ${partialPath(file)} is not from an export. Use --force to start again.`)
  return { rowCount, cursor: row.cursor, bytes: lastEnd }
}

function parseLine(line: string): { cursor?: unknown; export_error?: { cursor: string | null } } | null {
  try {
    return JSON.parse(line) as ReturnType<typeof parseLine>
  } catch {
    return null
  }
}

/** Renames the file to its final name once all of it is on disk. */
export async function completePartialFile(file: string, handle: FileHandle): Promise<void> {
  await handle.sync()
  await handle.close()
  await rename(partialPath(file), file)
  await rm(requestPath(file), { force: true })
}

async function openFile(path: string, flags: number): Promise<FileHandle> {
  try {
    return await open(path, flags, 0o600)
  } catch (error) {
    throw new ClientError(`${path} cannot be written: ${(error as Error).message}`)
  }
}
