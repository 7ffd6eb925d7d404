// The events of a job that the service accepted (the staged events sent so far, without the refused events), and the
// refused events, which are in `state.db`. Source: docs/wire/import.md §2.4, §2.6.

import type { JobFolder } from '../job/job-folder.ts'
import { JobState } from '../job/job-state.ts'
import type { StagedJob, StagedPart } from '../job/staged-part.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { createRejectLine, type RejectLine } from '../stages/reject-files.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { RefusedEvent } from './deliver-batch.ts'

export interface SentJob {
  readonly folder: JobFolder
  readonly job: StagedJob
  /** Null before sending starts. */
  readonly checkpoint: Checkpoint | null
}

/** A line of a part, with the events that it yielded, possibly none. */
export type SentLine =
  | { readonly kind: 'part'; readonly part: StagedPart }
  | { readonly kind: 'line'; readonly events: readonly ImportedEvent[] }

/** Reads the lines that were sent, in the order of sending. */
export async function* readSentLines({ folder, job, checkpoint }: SentJob): AsyncGenerator<SentLine> {
  if (checkpoint === null) return
  const begun = new Map(checkpoint.parts.map(part => [part.id, part]))
  for (const part of job.parts) {
    const state = begun.get(part.id)
    if (state === undefined) break
    yield { kind: 'part', part }
    const refused = state.counts.refused === 0 ? new Set<string>() : readRefusedUuids(folder, part.id)
    for await (const { line, result } of job.readPart(part)) {
      if (line > state.counts.read) break
      yield { kind: 'line', events: result.kind === 'events' ? removeRefused(result.events, refused) : [] }
    }
  }
}

/** All events of the job and of its retries. */
export async function* readSentEvents(jobs: readonly SentJob[]): AsyncGenerator<ImportedEvent> {
  for (const job of jobs)
    for await (const step of readSentLines(job)) {
      if (step.kind === 'line') yield* step.events
    }
}

function removeRefused(events: readonly ImportedEvent[], refused: ReadonlySet<string>): readonly ImportedEvent[] {
  return refused.size === 0 ? events : events.filter(({ uuid }) => !refused.has(uuid))
}

export function readRefusedUuids(folder: JobFolder, part: string): ReadonlySet<string> {
  return new Set(readSentRejects(folder, part).map(({ uuid }) => uuid))
}

/** The uuid identifies the refused event, since a record may yield several events. */
export type SentReject = RejectLine & { readonly uuid: string }

const prefix = 'refused/'

/** @param before how many refused events of the part are stored already. */
export function storeRefusedEvents(
  state: JobState,
  part: string,
  before: number,
  adapter: string,
  refused: readonly RefusedEvent[],
): void {
  for (const [index, { outgoing, ...refusal }] of refused.entries()) {
    const reject: SentReject = {
      ...createRejectLine(part, adapter, outgoing.outcome, refusal),
      uuid: outgoing.event.uuid,
    }
    state.put(`${prefix}${part}/${String(before + index).padStart(12, '0')}`, reject)
  }
}

/** @param part id of a part; by default, the refused events of all parts are read. */
export function* readSentRejects(folder: JobFolder, part?: string): Generator<SentReject> {
  using state = JobState.ofBegun(folder)
  yield* state?.list<SentReject>(part === undefined ? prefix : `${prefix}${part}/`) ?? []
}
