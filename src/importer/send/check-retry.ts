// Whether a file of repaired records belongs to a job. Records of another one would be sent into this one, or count among
// its rejects for good, so such a file is refused as a whole. Source: docs/wire/import.md §2.6 (`retry`).

import { globSync, readFileSync } from 'node:fs'
import { type JsonObject, ownValue } from '#core/json.ts'
import { JobFolder, objectIn } from '../job/job-folder.ts'
import { rejectFiles, rejectTexts } from '../stages/reject-files.ts'
import { fixOf } from '../stages/reject-fixes.ts'
import { isReject, linesOf, outcomesOf, type RetryContext } from './retried-records.ts'

/**
 * A line of rejects has to be one of the job's, repaired or not. Whole records do not say where they are from: they are
 * taken where at least one of them can be sent, or stands beside a line of rejects.
 * @returns why nothing of the file is tried, as a sentence without a full stop; null when it is.
 */
export async function findRetryProblem(context: RetryContext, path: string): Promise<string | null> {
  const lines = linesOf(readFileSync(path))
  const rejects = rejectsIn(lines.map(({ bytes }) => bytes.toString()))
  if (rejects.length > 0) {
    const foreign = await firstForeign(context.folder, rejects)
    return foreign === null ? null : foreignText(path, foreign)
  }
  let first: string | null = null
  for (const { line, result } of outcomesOf(context, lines)) {
    if (result.kind === 'events') return null
    if (result.kind !== 'rejected') continue
    const { reason, field } = result
    first ??= ` (line ${line}: ${reason}${field === null ? '' : `, ${field}`}. ${fixOf(reason, context.plan.source)})`
  }
  return `${path} holds neither lines of the rejects of this import nor whole records of ${context.plan.source} that can be sent${first ?? ''}`
}

interface FoundReject {
  /** The number of its line in the file, from 1. */
  readonly line: number
  readonly reject: JsonObject
}

function rejectsIn(texts: readonly string[]): readonly FoundReject[] {
  return texts.flatMap((text, index) => {
    const reject = objectIn(text) as JsonObject | null
    return reject !== null && isReject(reject) ? [{ line: index + 1, reject }] : []
  })
}

/** Holds what the file has, and not what the job has, which may be far more. */
async function firstForeign(folder: JobFolder, found: readonly FoundReject[]): Promise<FoundReject | null> {
  const wanted = new Set(found.map(({ reject }) => identityOf(reject)))
  for (const own of foldersWithRejects(folder))
    for (const { path } of rejectFiles(own))
      for await (const text of rejectTexts(path)) {
        const reject = objectIn(text) as JsonObject | null
        if (reject !== null) wanted.delete(identityOf(reject))
        if (wanted.size === 0) return null
      }
  return found.find(({ reject }) => wanted.has(identityOf(reject)))!
}

/** What is still wrong after a retry is among the rejects of that. */
function foldersWithRejects(folder: JobFolder): readonly JobFolder[] {
  const retries = globSync('retry/*/rejects', { cwd: folder.path }).toSorted()
  return [folder, ...retries.map(path => new JobFolder(folder.file('retry', path.split('/')[1]!)))]
}

/** The place and the bytes that the record had when it was refused, which nobody repairs. */
function identityOf(reject: JsonObject): string {
  return JSON.stringify(['object', 'line', 'byte', 'source_sha256'].map(key => ownValue(reject, key) ?? null))
}

function foreignText(path: string, { line, reject }: FoundReject): string {
  const [object, row] = ['object', 'line'].map(key => String(ownValue(reject, key)))
  return `line ${line} of ${path} is no reject of this import, which refused no such record in line ${row} of ${object}`
}
