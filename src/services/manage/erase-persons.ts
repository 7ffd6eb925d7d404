// Erases persons: removes them from the state at once, and records what the worker must remove elsewhere. Source:
// docs/decisions/0064-erased-persons.md.

import type { Change } from '#core/author.ts'
import type { ErasureTerms, LogEnds } from '#core/persons/erasure.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { ErasureStore } from '#ports/state/erasure-store.ts'
import type { LogBindingStore } from '#ports/state/worker-state.ts'
import { findStreamProgress, type ProgressStore } from '../progress/find-progress.ts'
import { retryOnConflict } from '../shared/write-optimistically.ts'

export interface ErasePersonsDeps {
  readonly management: Pick<ErasureStore, 'findPersonIds' | 'erasePersons'> &
    Pick<LogBindingStore, 'findFollowedLog'> &
    ProgressStore
  readonly log: Pick<EventLogReader, 'listStreams' | 'readStreamStatus'>
}

export interface ErasePersonsRequest extends ErasureTerms {
  readonly projectId: number
  readonly persons: Parameters<ErasureStore['findPersonIds']>[1]
}

/**
 * @returns how many persons were found, and how many of them were erased. @throws PortError; some persons may be erased
 * then.
 */
export async function erasePersons(
  deps: ErasePersonsDeps,
  { projectId, persons, ...terms }: ErasePersonsRequest,
  change: Change,
): Promise<{ foundCount: number; erasedCount: number }> {
  const { management } = deps
  const personIds = await management.findPersonIds(projectId, persons)
  // Reads where the log ends before it erases the persons: everything accepted before this request is in the log by then.
  const ends = personIds.length === 0 ? null : await findLogEnds(deps)
  let erasedCount = 0
  for (let from = 0; ends !== null && from < personIds.length; ) {
    const erasure = { projectId, ...terms, ...ends, personIds: personIds.slice(from) }
    // A worker may give a person another id at the same time: the next try erases that id, too.
    const done = await retryOnConflict(() => management.erasePersons(erasure, change))
    from += done.takenCount
    erasedCount += done.erasedCount
  }
  return { foundCount: personIds.length, erasedCount }
}

async function findLogEnds({ management, log }: ErasePersonsDeps): Promise<LogEnds> {
  const endOffsets: Record<string, number> = {}
  for (const { stream } of await log.listStreams()) {
    const { doneOffset } = await findStreamProgress(management, stream)
    endOffsets[stream] = (await log.readStreamStatus(stream, doneOffset)).endOffset
  }
  return { logId: (await management.findFollowedLog())?.id ?? '', endOffsets }
}
