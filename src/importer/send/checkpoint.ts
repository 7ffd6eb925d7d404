// How far sending has come, in `state.db`. A round of lines is committed once all its events are accepted, so after a crash
// the lines of an uncommitted round are sent again and none is skipped. Source: docs/wire/import.md §2.4.

import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import { JobState } from '../job/job-state.ts'
import { isGeneratedPart, type StagedPart } from '../job/staged-part.ts'

/**
 * The first five fields count lines, which are records; the other fields count events. A record may yield several events.
 */
const noCounts = {
  /** The number of lines read, which is also the number of the last line that was sent. */
  read: 0,
  /** Lines with at least one event that the service accepted. */
  records: 0,
  ...{ skipped: 0, rejected: 0, collapsed: 0 },
  /** Events that the service accepted. */
  sent: 0,
  /** Events refused by the service or too large for it. If all events of a line were refused, the line counts as rejected. */
  refused: 0,
  /** How many accepted events were duplicates or recent, if the service reports that. */
  ...{ duplicates: 0, recent: 0 },
}
export type SendCounts = typeof noCounts

export interface PartProgress {
  readonly id: string
  readonly sha256: string
  readonly counts: SendCounts
}

/** What a checkpoint belongs to. Sending continues only if all of it is unchanged. */
export interface CheckpointIdentity {
  readonly jobId: string
  /** Id of the job at the service; null for a service without import jobs, such as another product. */
  readonly serviceJobId: string | null
  readonly target: string
  readonly project: string
  readonly mappingSha256: string
}

/** What a checkpoint stores once for all parts of the job. */
interface SendState {
  readonly identity: CheckpointIdentity
  readonly begunAt: string
  isSent: boolean
  /** Time spent sending, over all runs. */
  spentMs: number
  retries: number
}

export interface Checkpoint extends SendState {
  /** The parts begun so far. */
  readonly parts: PartProgress[]
}

const stateName = 'sending'
const partPrefix = 'sending/'

export function createCheckpoint(identity: CheckpointIdentity, begunAt: string): Checkpoint {
  return { identity, begunAt, isSent: false, spentMs: 0, retries: 0, parts: [] }
}

export function createPartProgress(id: string, sha256: string): PartProgress {
  return { id, sha256, counts: { ...noCounts } }
}

/** @returns null before sending starts. */
export function readCheckpoint(folder: JobFolder): Checkpoint | null {
  using state = JobState.ofBegun(folder)
  return state && getCheckpoint(state)
}

export function getCheckpoint(state: JobState): Checkpoint | null {
  // The parts are read after the common state, so that they are not older than it while another process is sending.
  const common = state.get<SendState>(stateName)
  return common && { ...common, parts: [...state.list<PartProgress>(partPrefix)] }
}

/** @param changed the parts to store; by default, all parts are stored. */
export function putCheckpoint(state: JobState, { parts, ...common }: Checkpoint, changed = parts): void {
  state.put(stateName, common)
  for (const part of changed) state.put(`${partPrefix}${part.id}`, part)
}

const identityWords: Readonly<Record<keyof CheckpointIdentity, string>> = {
  target: 'the target',
  project: 'the project',
  jobId: 'the job',
  serviceJobId: 'the job of the service',
  mappingSha256: 'a mapping with the hash',
}

/**
 * @param parts of the current manifest.
 * @throws JobStopped, naming the difference, if the bytes, the mapping or the target changed.
 */
export function checkSameJob(checkpoint: Checkpoint, now: CheckpointIdentity, parts: readonly StagedPart[]): void {
  const known = new Map(parts.map(part => [part.id, part.sha256]))
  const keys = Object.keys(identityWords) as (keyof CheckpointIdentity)[]
  const pairs: (readonly [what: string, before: string | null, after: string | null])[] = [
    ...keys.map(key => [identityWords[key], checkpoint.identity[key], now[key]] as const),
    ...checkpoint.parts.map(({ id, sha256 }) => [`part ${id} with the hash`, sha256, known.get(id) ?? null] as const),
  ]
  for (const [what, before, after] of pairs)
    if (before !== after)
      throw new JobStopped(
        `Sending began with ${what} ${before ?? '(none)'}, and now it is ${after ?? '(none)'}. ` +
          'Restore what was approved, or discard the job and start a new one in another folder.',
      )
}

/** Sums the counts of the records in the files, and of the groups and links that were generated from these records. */
export function sumProgress(parts: readonly PartProgress[]): {
  readonly records: SendCounts
  readonly generated: SendCounts
} {
  const sumCounts = (all: readonly PartProgress[]) => sumSendCounts(all.map(({ counts }) => counts))
  return {
    records: sumCounts(parts.filter(part => !isGeneratedPart(part))),
    generated: sumCounts(parts.filter(isGeneratedPart)),
  }
}

export function sumSendCounts(all: Iterable<SendCounts>): SendCounts {
  const sum = { ...noCounts }
  for (const counts of all) for (const key of Object.keys(sum) as (keyof SendCounts)[]) sum[key] += counts[key]
  return sum
}
