// The events refused while sending, in `state.db`. Source: docs/wire/import.md §2.6.

import { existsSync } from 'node:fs'
import type { JobFolder } from '../job/job-folder.ts'
import { JobState, stateFile } from '../job/job-state.ts'
import { createRejectLineFor, type RejectLine } from '../stages/reject-files.ts'
import type { RefusedEvent } from './deliver-batch.ts'

/** The uuid identifies the refused event, since a record may yield several. */
export type SentReject = RejectLine & { readonly uuid: string }

const prefix = 'refused/'

/** @param before how many events of the part were refused before. */
export function putRejects(
  state: JobState,
  part: string,
  before: number,
  adapter: string,
  refused: readonly RefusedEvent[],
): void {
  for (const [index, { outgoing, ...refusal }] of refused.entries()) {
    const reject: SentReject = {
      ...createRejectLineFor(part, adapter, outgoing.outcome, refusal),
      uuid: outgoing.event.uuid,
    }
    state.put(`${prefix}${part}/${String(before + index).padStart(12, '0')}`, reject)
  }
}

/** @param part by default all. */
export function* readSentRejects(folder: JobFolder, part?: string): Generator<SentReject> {
  if (!existsSync(folder.file(stateFile))) return
  using state = new JobState(folder)
  yield* state.list<SentReject>(part === undefined ? prefix : `${prefix}${part}/`)
}
