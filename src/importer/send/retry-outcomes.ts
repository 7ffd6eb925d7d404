// What became of the records that were repaired, each counted once however often it was tried: a record that was sent
// stays sent, and of the others the last try counts. Source: docs/wire/import.md §2.6 (`retry`).

import { isJsonObject, type JsonObject, ownValue, parseJson } from '#core/json.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedOutcome } from '../job/staged-part.ts'
import type { RawPosition } from '../read/read-record.ts'
import { Type } from '../records/file-schema.ts'
import { isReject, retryOrigin } from './retried-records.ts'
import { refusedUuids, type SentJob } from './sent-events.ts'

export interface RetryOutcome {
  readonly kind: 'sent' | 'skipped' | 'rejected'
  /** Events that the service took. */
  readonly events: number
  readonly refused: number
}

export interface RetrySums {
  readonly read: number
  readonly sent: number
  readonly refused: number
  readonly rejected: number
  readonly skipped: number
}

/** By record. */
export type RetryOutcomes = ReadonlyMap<string, RetryOutcome>

const outcomesFile = 'retry/outcomes.json'
const outcomeSchema = Type.Object({
  kind: Type.Enum(['sent', 'skipped', 'rejected']),
  events: Type.Number(),
  refused: Type.Number(),
})
const outcomesSchema = Type.Object({ records: Type.Array(Type.Tuple([Type.String(), outcomeSchema])) })

/** @param retried with the checkpoints that they have now. */
export async function retryOutcomes(retried: readonly SentJob[]): Promise<RetryOutcomes> {
  const begun = retried
    .flatMap(each => (each.checkpoint === null ? [] : [{ ...each, checkpoint: each.checkpoint }]))
    .toSorted((a, b) => (a.checkpoint.begun_at < b.checkpoint.begun_at ? -1 : 1))
  const lastOfFile = new Map(begun.map(({ folder }) => [retryOrigin(folder), folder.path]))
  const outcomes = new Map<string, RetryOutcome>()
  for (const { folder, job, checkpoint } of begun) {
    const [progress] = checkpoint.parts
    if (progress === undefined) continue
    const refused = await refusedUuids(folder, progress)
    const isLast = lastOfFile.get(retryOrigin(folder)) === folder.path
    for await (const outcome of job.readPart(job.parts[0]!)) {
      if (outcome.line > progress.committed.line) break
      const position = positionIn(outcome.text)
      const now = outcomeOf(outcome, refused)
      // What is no line of rejects says not which record it is. While its file is repaired it has another text each time.
      if (position === null && now.kind === 'rejected' && !isLast) continue
      const key = position === null ? sha256Hex(outcome.text) : recordKey(position)
      if (outcomes.get(key)?.kind !== 'sent' || now.kind === 'sent') outcomes.set(key, now)
    }
  }
  return outcomes
}

export function sumOutcomes(outcomes: RetryOutcomes): RetrySums {
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

/** How many of the rejected records are sent now; repaired records that are no lines of `rejects/` are others, for all we know. */
export function repairedRejects(outcomes: RetryOutcomes): number {
  return [...outcomes].filter(([key, { kind }]) => kind === 'sent' && isOfReject(key)).length
}

/** Whether the key of a record says which reject it was. */
export function isOfReject(key: string): boolean {
  return key.includes(':')
}

/** Kept for commands that only look. */
export function keepRetryOutcomes(folder: JobFolder, outcomes: RetryOutcomes): void {
  folder.writeJson(outcomesFile, { records: [...outcomes] })
}

/** @returns none when nothing was repaired. */
export function readRetryOutcomes(folder: JobFolder): RetryOutcomes {
  return new Map(folder.readJson(outcomesFile, outcomesSchema)?.records)
}

/**
 * The place in the raw files, which a line of rejects keeps whatever is repaired in it. The byte tells apart the records
 * of a JSON list that is written in one line.
 */
export function recordKey({ object, line, byte }: RawPosition): string {
  return `${object}:${line}:${byte}`
}

function positionIn(text: string): RawPosition | null {
  let value: JsonObject
  try {
    const parsed = parseJson(text)
    if (!isJsonObject(parsed)) return null
    value = parsed
  } catch {
    // A record that is no JSON is no line of rejects.
    return null
  }
  const [object, line, byte] = ['object', 'line', 'byte'].map(key => ownValue(value, key))
  if (!isReject(value) || typeof object !== 'string' || typeof line !== 'number') return null
  return { object, line, byte: typeof byte === 'number' ? byte : 0 }
}

function outcomeOf({ result }: StagedOutcome, refused: ReadonlySet<string>): RetryOutcome {
  if (result.kind === 'rejected') return { kind: 'rejected', events: 0, refused: 0 }
  if (result.kind !== 'events') return { kind: 'skipped', events: 0, refused: 0 }
  const lost = result.events.filter(({ uuid }) => refused.has(uuid)).length
  const events = result.events.length - lost
  return { kind: events === 0 && lost > 0 ? 'rejected' : 'sent', events, refused: lost }
}
