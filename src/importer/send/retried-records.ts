// Repaired rejects form a separate staged job whose single part is the file of repaired records. So they are sent like all
// records: with the same conversion, the same uuids and a checkpoint. Records that are still wrong are rejected again.
// Source: docs/wire/import.md §2.6 (`retry`).

import { copyFileSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { getOwnValue, isJsonObject, type JsonObject, setOwnValue } from '#core/json.ts'
import { JobDatabase } from '../job/job-database.ts'
import { JobFolder } from '../job/job-folder.ts'
import { readJobState, writeJobState } from '../job/job-state.ts'
import { JobLedger } from '../job/ledger.ts'
import type { Manifest, RawObject } from '../job/manifest.ts'
import type { ImportPlan } from '../job/plan.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedJob, StagedOutcome } from '../job/staged-part.ts'
import { type CsvHeader, type ParsedSourceRecord, parseCsvRow, parseJsonLine } from '../read/parse-record.ts'
import { createRecordEvents } from '../records/generated-events.ts'
import { createInMemoryLedger, type ImportLedger } from '../records/import-ledger.ts'
import type { ImportSource } from '../records/import-source.ts'
import { createJobConverter, type JobConversion } from '../stages/job-conversion.ts'
import { readCheckpoint } from './checkpoint.ts'
import type { SentJob } from './sent-events.ts'

const recordsFile = 'records.jsonl'
const originName = 'origin'
/** Prefix of the part ids of retries; other part ids start with a day. */
export const retryPrefix = 'retry/'

export interface RetryContext {
  /** The folder of the job that the records belong to. */
  readonly folder: JobFolder
  readonly plan: ImportPlan
  readonly manifest: Manifest
  readonly source: ImportSource
}

/** Copies the file into the job's folder. Adding a file with the same content again continues the same retry. */
export function addRetry(context: RetryContext, path: string): SentJob {
  const sha256 = sha256Hex(readFileSync(path))
  const folder = new JobFolder(context.folder.file('retry', sha256.slice(0, 16)))
  mkdirSync(folder.path, { recursive: true })
  copyFileSync(path, folder.file(recordsFile))
  writeJobState(folder, originName, resolve(path))
  return openRetry(context, folder)
}

/** The file that a retry was made from; a file that is repaired in several steps yields several retries. */
export function readOriginalRetryFolder(folder: JobFolder): string {
  return readJobState<string>(folder, originName) ?? folder.path
}

/** All retries of the job; verification counts them too. */
export function openRetries(context: RetryContext): SentJob[] {
  return listRetryFolders(context.folder).map(folder => openRetry(context, folder))
}

export function listRetryFolders(folder: JobFolder): readonly JobFolder[] {
  const paths = globSync(`retry/*/${recordsFile}`, { cwd: folder.path }).toSorted()
  return paths.map(path => new JobFolder(folder.file('retry', path.split('/')[1]!)))
}

function openRetry(context: RetryContext, folder: JobFolder): SentJob {
  const bytes = readFileSync(folder.file(recordsFile))
  const lines = splitRetriedLines(bytes)
  const part = {
    id: `${retryPrefix}${basename(folder.path)}`,
    sha256: sha256Hex(bytes),
    bytes: bytes.length,
    records: lines.length,
    firstUs: null,
    lastUs: null,
  }
  const job: StagedJob = {
    parts: [part],
    async *readPart(_part, afterLine = 0) {
      // Convert from the first line on, since later records build on the persons and groups of earlier records.
      for (const outcome of convertRetriedLines(context, lines)) if (outcome.line > afterLine) yield outcome
    },
  }
  return { folder, job, checkpoint: readCheckpoint(folder) }
}

export function splitRetriedLines(bytes: Buffer) {
  const lines: { readonly bytes: Buffer; readonly at: number }[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0x0a, at)
    const next = end === -1 ? bytes.length : end + 1
    lines.push({ bytes: bytes.subarray(at, end === -1 ? next : end), at })
    at = next
  }
  return lines
}

/** Converts the lines of a file of repaired records; the file need not have been added yet. */
export function* convertRetriedLines(
  context: RetryContext,
  lines: ReturnType<typeof splitRetriedLines>,
): Generator<StagedOutcome> {
  using database = new JobDatabase(context.folder)
  const ledger = new JobLedger(database)
  const known = createLedgerWithLinks(ledger)
  const conversion = createJobConverter(context.plan, context.source, (kind, key) => ledger.findFact(kind, key))
  for (const [index, { bytes, at }] of lines.entries()) {
    const { parsed, table, isSent, ordinal = index + 1 } = parseRepairedRecord(bytes, context.manifest)
    const text = bytes.toString()
    yield {
      line: index + 1,
      raw: { object: recordsFile, line: index + 1, byte: at },
      textBytes: bytes.length,
      source: () => ({ text, sha256: sha256Hex(bytes), unreadableBytes: null }),
      result: isSent
        ? { kind: 'skipped', reason: 'duplicate_in_source' }
        : convertRepaired(parsed, table, text, ordinal, context, conversion, known),
    }
  }
}

/** Creates a ledger in which devices remain linked to the users that the job linked them to. */
function createLedgerWithLinks(ledger: JobLedger): ImportLedger {
  const own = createInMemoryLedger()
  return {
    ...own,
    link: (deviceId, userId) => {
      const user = ledger.userOf(deviceId)
      if (user === null) return own.link(deviceId, userId)
      return user === userId ? 'known' : 'shared'
    },
  }
}

interface RepairedRecord {
  readonly parsed: ParsedSourceRecord
  readonly table: string | null
  readonly isSent: boolean
  /** The record's number in its original file. */
  readonly ordinal?: number
}

/** @param bytes a line of `rejects/` with a repaired `source` or `record`, or the repaired record itself. */
function parseRepairedRecord(bytes: Buffer, manifest: Manifest): RepairedRecord {
  const parsed = parseJsonLine(bytes)
  const onlyObject = manifest.objects.length === 1 ? manifest.objects[0]! : null
  if (!('value' in parsed) || !isRejectLine(parsed.value))
    return { parsed, table: onlyObject?.table ?? null, isSent: false }
  const { object, line, ordinal = line } = parsed.value
  const { table, ...rows } = manifest.objects.find(each => each.object === object) ?? onlyObject ?? noObject
  // `pennon import rejects` marks rejects that another retry has sent. They are not sent again: their `source` is still the
  // broken text.
  const isSent = getOwnValue(parsed.value, 'repaired') === true
  return {
    parsed: parseRepairedSource(parsed.value, rows),
    ...{ table, isSent },
    ...(typeof ordinal === 'number' && { ordinal }),
  }
}

const noObject: RawObject = { object: '', table: null }

/** For a CSV row, use its text (`source`) if that was edited, otherwise its cells by column name (`record`). */
function parseRepairedSource(reject: JsonObject, { columns, ...dialect }: Partial<CsvHeader>): ParsedSourceRecord {
  const { source, record, source_sha256 } = reject
  if (isJsonObject(source)) return { value: source }
  const text = String(source)
  if (isJsonObject(record) && sha256Hex(text) === source_sha256) return { value: removeEmptyCells(record) }
  return columns === undefined
    ? parseJsonLine(Buffer.from(text))
    : parseCsvRow(Buffer.from(text), { columns, ...dialect })
}

/** Removes empty cells as the CSV reader does, so that a repaired row gets the same uuid as a row that was never wrong. */
function removeEmptyCells(record: JsonObject): JsonObject {
  const cells: JsonObject = {}
  for (const [column, cell] of Object.entries(record)) if (cell !== '') setOwnValue(cells, column, cell)
  return cells
}

/** Whether the value is a line of `rejects/`, repaired or not. */
export function isRejectLine(value: JsonObject): boolean {
  return ['source', 'reason', 'adapter', 'source_sha256'].every(key => getOwnValue(value, key) !== undefined)
}

function convertRepaired(
  parsed: ParsedSourceRecord,
  table: string | null,
  text: string,
  ordinal: number,
  { plan }: RetryContext,
  conversion: JobConversion,
  ledger: ImportLedger,
): StagedOutcome['result'] {
  const record = conversion.convert({ parsed, text }, ordinal, table)
  if ('skipped' in record) return { kind: 'skipped', reason: record.skipped }
  if ('rejected' in record) return { kind: 'rejected', ...record.rejected }
  const { events, notes } = createRecordEvents(plan.source, record, ledger)
  return { kind: 'events', events, notes, dropped: record.dropped ?? [] }
}
