// Checks that a file of repaired records belongs to the job. Records of another job would be sent with this one, or count
// as its rejects forever, so such a file is refused as a whole. Source: docs/wire/import.md §2.6 (`retry`).

import { globSync, readFileSync } from 'node:fs'
import { type JsonObject, ownValue } from '#core/json.ts'
import { JobFolder, parseObject } from '../job/job-folder.ts'
import { listRejectFiles, readRejectTexts } from '../stages/reject-files.ts'
import { findFix } from '../stages/reject-fixes.ts'
import { convertLines, isReject, type RetryContext, splitLines } from './retried-records.ts'

/**
 * Every reject line must be one of the job's, repaired or not. Whole records do not name their job: they are accepted if
 * at least one of them can be sent, or if the file also has reject lines.
 * @returns why the file is refused, as a sentence without a full stop; null if it is accepted.
 */
export async function findRetryProblem(context: RetryContext, path: string): Promise<string | null> {
  const lines = splitLines(readFileSync(path))
  const rejects = parseRejects(lines.map(({ bytes }) => bytes.toString()))
  if (rejects.length > 0) {
    const foreign = await findForeignReject(context.folder, rejects)
    return foreign === null ? null : formatForeignReject(path, foreign)
  }
  let first: string | null = null
  for (const { line, result } of convertLines(context, lines)) {
    if (result.kind === 'events') return null
    if (result.kind !== 'rejected') continue
    const { reason, field } = result
    first ??= ` (line ${line}: ${reason}${field === null ? '' : `, ${field}`}. ${findFix(reason, context.plan.source)})`
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
    const reject = parseObject(text) as JsonObject | null
    return reject !== null && isReject(reject) ? [{ line: index + 1, reject }] : []
  })
}

/** Streams the job's rejects, and holds only the file's in memory, since the job may have far more. */
async function findForeignReject(folder: JobFolder, found: readonly FoundReject[]): Promise<FoundReject | null> {
  const wanted = new Set(found.map(({ reject }) => identifyRecord(reject)))
  for (const own of listFoldersWithRejects(folder))
    for (const { path } of listRejectFiles(own))
      for await (const text of readRejectTexts(path)) {
        const reject = parseObject(text) as JsonObject | null
        if (reject !== null) wanted.delete(identifyRecord(reject))
        if (wanted.size === 0) return null
      }
  return found.find(({ reject }) => wanted.has(identifyRecord(reject)))!
}

/** Earlier retries have rejects too: records that were still wrong after the repair. */
function listFoldersWithRejects(folder: JobFolder): readonly JobFolder[] {
  const retries = globSync('retry/*/rejects', { cwd: folder.path }).toSorted()
  return [folder, ...retries.map(path => new JobFolder(folder.file('retry', path.split('/')[1]!)))]
}

/** Identifies the original record by its place and hash, which a repair leaves unchanged. */
function identifyRecord(reject: JsonObject): string {
  return JSON.stringify(['object', 'line', 'byte', 'source_sha256'].map(key => ownValue(reject, key) ?? null))
}

function formatForeignReject(path: string, { line, reject }: FoundReject): string {
  const [object, row] = ['object', 'line'].map(key => String(ownValue(reject, key)))
  return `line ${line} of ${path} is not a reject of this import, which rejected no such record in line ${row} of ${object}`
}
