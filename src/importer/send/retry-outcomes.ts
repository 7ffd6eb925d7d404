// The outcome of each repaired record, counted once however often it was retried: once sent, the record counts as sent;
// until then, its last retry counts. Source: docs/wire/import.md §2.6 (`retry`).

import { getOwnValue, type JsonObject } from '#core/json.ts'
import { type JobFolder, parseObjectOrNull } from '../job/job-folder.ts'
import { readJobState, writeJobState } from '../job/job-state.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import type { RawPosition } from '../read/read-record.ts'
import { isRejectLine, readOriginalRetryFolder } from './retried-records.ts'
import { readRefusedUuids, type SentJob } from './sent-events.ts'

export interface RetryOutcome {
  readonly kind: 'sent' | 'skipped' | 'rejected'
  /** Events that the service accepted. */
  readonly events: number
  readonly refused: number
}

/** Outcomes by the key from `buildRecordKey`, or, for a record that was not a reject line, by the hash of its text. */
export type RetryOutcomes = ReadonlyMap<string, RetryOutcome>

const outcomesName = 'retried'

/** @param retried the job's retries, with their current checkpoints. */
export async function collectRetryOutcomes(retried: readonly SentJob[]): Promise<RetryOutcomes> {
  const begun = retried
    .flatMap(each => (each.checkpoint === null ? [] : [{ ...each, checkpoint: each.checkpoint }]))
    .toSorted((a, b) => (a.checkpoint.begunAt < b.checkpoint.begunAt ? -1 : 1))
  const lastOfFile = new Map(begun.map(({ folder }) => [readOriginalRetryFolder(folder), folder.path]))
  const outcomes = new Map<string, RetryOutcome>()
  for (const { folder, job, checkpoint } of begun) {
    const [progress] = checkpoint.parts
    if (progress === undefined) continue
    const refused = readRefusedUuids(folder, progress.id)
    const isLast = lastOfFile.get(readOriginalRetryFolder(folder)) === folder.path
    for await (const outcome of job.readPart(job.parts[0]!)) {
      if (outcome.line > progress.counts.read) break
      const { text } = outcome.source()
      const position = parsePosition(text)
      const now = toRetryOutcome(outcome, refused)
      // A whole record does not say which record it repairs, and its text differs in each repair of the file, so only its
      // rejection in the latest version of the file counts.
      if (position === null && now.kind === 'rejected' && !isLast) continue
      const key = position === null ? sha256Hex(text) : buildRecordKey(position)
      if (outcomes.get(key)?.kind !== 'sent' || now.kind === 'sent') outcomes.set(key, now)
    }
  }
  return outcomes
}

export function sumRetryOutcomes(outcomes: RetryOutcomes) {
  const all = [...outcomes.values()]
  const count = (kind: RetryOutcome['kind']) => all.filter(each => each.kind === kind).length
  return {
    read: all.length,
    sent: all.reduce((sum, { events }) => sum + events, 0),
    refused: all.reduce((sum, { refused }) => sum + refused, 0),
    rejected: count('rejected'),
    skipped: count('skipped'),
  }
}

/**
 * How many rejected records have now been sent; whole records are not counted, since they need not be repairs of rejected
 * records.
 */
export function countRepairedRejects(outcomes: RetryOutcomes): number {
  return [...outcomes].filter(([key, { kind }]) => kind === 'sent' && isRejectKey(key)).length
}

/** Whether a key identifies a reject line, rather than a whole record by its hash. */
export function isRejectKey(key: string): boolean {
  return key.includes(':')
}

/** Stores the outcomes for commands that only read the folder. */
export function storeRetryOutcomes(folder: JobFolder, outcomes: RetryOutcomes): void {
  writeJobState(folder, outcomesName, [...outcomes])
}

/** @returns an empty map if nothing was repaired. */
export function readRetryOutcomes(folder: JobFolder): RetryOutcomes {
  return new Map(readJobState<[string, RetryOutcome][]>(folder, outcomesName))
}

/**
 * The record's place in the raw files, which a reject line keeps when it is repaired. The byte distinguishes records of a
 * JSON array written in a single line.
 */
export function buildRecordKey({ object, line, byte }: RawPosition): string {
  return `${object}:${line}:${byte}`
}

function parsePosition(text: string): RawPosition | null {
  const value = parseObjectOrNull(text) as JsonObject | null
  if (value === null || !isRejectLine(value)) return null
  const [object, line, byte] = ['object', 'line', 'byte'].map(key => getOwnValue(value, key))
  if (typeof object !== 'string' || typeof line !== 'number') return null
  return { object, line, byte: typeof byte === 'number' ? byte : 0 }
}

function toRetryOutcome({ result }: StagedOutcome, refused: ReadonlySet<string>): RetryOutcome {
  if (result.kind === 'rejected') return { kind: 'rejected', events: 0, refused: 0 }
  if (result.kind !== 'events') return { kind: 'skipped', events: 0, refused: 0 }
  const lost = result.events.filter(({ uuid }) => refused.has(uuid)).length
  const events = result.events.length - lost
  return { kind: events === 0 && lost > 0 ? 'rejected' : 'sent', events, refused: lost }
}
