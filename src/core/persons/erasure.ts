// Erasing persons: what is asked, what is recorded of it, and which records and rows were before it.
// Source: docs/decisions/0064-erased-persons.md.

import type { LogStream } from '../events/log-stream.ts'

/** How many persons one request may erase. Source: PostHog's limit. */
export const erasedPersonsMax = 1_000

/** How often persons of a project were erased. */
export interface ErasureCount {
  readonly projectId: number
  readonly count: number
}

export interface ErasureTerms {
  /** Only events and recordings go; the person stays with its ids. */
  readonly keepsPerson: boolean
  /** Events, rejects and what counts flag calls. */
  readonly deletesEvents: boolean
  readonly deletesRecordings: boolean
}

/** How many rows an erasure found, each event once. */
export interface RemovedRows {
  readonly events: number
  /** Of import jobs that are not published. */
  readonly pendingEvents: number
  readonly recordings: number
  readonly rejectedEvents: number
}

export const noRemovedRows: RemovedRows = { events: 0, pendingEvents: 0, recordings: 0, rejectedEvents: 0 }

/** An erased person, with the request that it was part of. */
export interface ErasedPerson extends ErasureTerms {
  readonly erasureId: number
  readonly uuid: string
  readonly requestedBy: string | null
  readonly requestedAtMs: number
  /** When nothing was left; null until then. */
  readonly doneAtMs: number | null
  /** Persons of the same request. */
  readonly personCount: number
  /** Rows removed for all persons of the request; null until they are counted. */
  readonly removed: RemovedRows | null
}

/** Where the log ended when persons were erased: what it had of them then is erased too. */
export interface LogEnds {
  readonly logId: string
  /** For each stream, the offset behind its last record. */
  readonly endOffsets: Readonly<Record<LogStream, number>>
}

/** An erased distinct id, for as long as the log may have records of it. */
export interface ErasedId extends LogEnds, Pick<ErasureTerms, 'deletesEvents' | 'deletesRecordings'> {
  readonly projectId: number
  readonly distinctId: string
}

/** An erasure as the worker carries it out. */
export interface PersonErasure extends ErasureTerms, LogEnds {
  readonly id: number
  readonly projectId: number
  /** The project's count of erasures: rows that were made with a lower one were made before. */
  readonly erasures: number
  /** Rows of the mirror up to this version were made before. */
  readonly mirrorVersion: number
  readonly isCounted: boolean
  readonly distinctIds: readonly string[]
  /** Uuids of the erased persons and of those merged into them, unless another person has the uuid now. Empty if kept. */
  readonly personUuids: readonly string[]
}

/** Without whom it erases. */
export type ErasureOutline = Omit<PersonErasure, 'distinctIds' | 'personUuids'>

/** Which of the records of a chunk belong to erased persons. */
export class ErasedRecords {
  readonly #logId: string
  readonly #stream: LogStream
  readonly #byId: ReadonlyMap<string, readonly ErasedId[]>

  constructor(logId: string, stream: LogStream, ids: readonly ErasedId[]) {
    this.#logId = logId
    this.#stream = stream
    this.#byId = Map.groupBy(ids, keyOf)
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0
  }

  /** Whether what is at this offset was accepted before its distinct id was erased. */
  has(of: 'events' | 'recordings', projectId: number, distinctId: string, offset: number): boolean {
    if (this.isEmpty) return false
    return (this.#byId.get(keyOf({ projectId, distinctId })) ?? []).some(
      ({ logId, endOffsets, deletesEvents, deletesRecordings }) =>
        (of === 'events' ? deletesEvents : deletesRecordings) &&
        logId === this.#logId &&
        offset < (endOffsets[this.#stream] ?? 0),
    )
  }
}

function keyOf({ projectId, distinctId }: Pick<ErasedId, 'projectId' | 'distinctId'>): string {
  return `${projectId} ${distinctId}`
}
