// Checks that a file of repaired records belongs to the job. Records of another job would be sent with this job, or count
// as rejects of this job forever, so such a file is refused as a whole. Source: docs/wire/import.md §2.6 (`retry`).

import { readFileSync } from 'node:fs'
import { getOwnValue, type JsonObject } from '#core/json.ts'
import { type JobFolder, parseObjectOrNull } from '../job/job-folder.ts'
import { listRejectFiles, readRejectTexts } from '../stages/reject-files.ts'
import { findRejectFix } from '../stages/reject-fixes.ts'
import {
  convertRetriedLines,
  isRejectLine,
  listRetryFolders,
  type RetryContext,
  splitRetriedLines,
} from './retried-records.ts'
import { readSentRejects } from './sent-events.ts'

/**
 * Every reject line must belong to the job, repaired or not. Whole records do not name their job: they are accepted if at
 * least one of them can be sent, or if the file also has reject lines.
 * @returns why the file is refused, as a sentence without a full stop; null if it is accepted.
 */
export async function findRetryProblem(context: RetryContext, path: string): Promise<string | null> {
  const lines = splitRetriedLines(readFileSync(path))
  const rejects = parseRejects(lines.map(({ bytes }) => bytes.toString()))
  if (rejects.length > 0) {
    const foreign = await findUnknownReject(context.folder, rejects)
    return foreign === null ? null : formatUnknownReject(path, foreign)
  }
  let first: string | null = null
  for (const { line, result } of convertRetriedLines(context, lines)) {
    if (result.kind === 'events') return null
    if (result.kind !== 'rejected') continue
    const { reason, field } = result
    first ??= ` (line ${line}: ${reason}${field === null ? '' : `, ${field}`}. ${findRejectFix(reason, context.plan.source)})`
  }
  return `${path} holds neither lines of the rejects of this import nor whole records of ${context.plan.source} that can be sent${first ?? ''}`
}

interface FoundReject {
  /** Line in the file, from 1. */
  readonly line: number
  readonly reject: JsonObject
}

function parseRejects(texts: readonly string[]): readonly FoundReject[] {
  return texts.flatMap((text, index) => {
    const reject = parseObjectOrNull(text) as JsonObject | null
    return reject !== null && isRejectLine(reject) ? [{ line: index + 1, reject }] : []
  })
}

/** Streams the job's rejects and holds only the rejects of the file in memory, since the job may have far more. */
async function findUnknownReject(folder: JobFolder, found: readonly FoundReject[]): Promise<FoundReject | null> {
  const wanted = new Set(found.map(({ reject }) => identifyRecord(reject)))
  for await (const reject of readJobRejects(folder)) {
    wanted.delete(identifyRecord(reject))
    if (wanted.size === 0) return null
  }
  return found.find(({ reject }) => wanted.has(identifyRecord(reject)))!
}

/** Earlier retries have rejects too: events that the service refused after the repair. */
async function* readJobRejects(folder: JobFolder): AsyncGenerator<object> {
  for (const { path } of listRejectFiles(folder))
    for await (const text of readRejectTexts(path)) yield parseObjectOrNull(text) ?? {}
  for (const own of [folder, ...listRetryFolders(folder)]) yield* readSentRejects(own)
}

/** Identifies the original record by its place and hash, which a repair leaves unchanged. */
function identifyRecord(reject: object): string {
  return JSON.stringify(
    ['object', 'line', 'byte', 'source_sha256'].map(key => getOwnValue(reject as JsonObject, key) ?? null),
  )
}

function formatUnknownReject(path: string, { line, reject }: FoundReject): string {
  const [object, row] = ['object', 'line'].map(key => String(getOwnValue(reject, key)))
  return `line ${line} of ${path} is not a reject of this import, which rejected no such record in line ${row} of ${object}`
}
