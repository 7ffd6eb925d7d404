// Erasing persons: the request, its stored form, and which records and rows it covers.
// Source: docs/decisions/0064-erased-persons.md.

import type { Author } from '../author.ts'
import type { LogStream } from '../events/log-stream.ts'

/** How many persons one request may erase. Source: PostHog's limit. */
export const erasedPersonsMax = 1_000

/** How often persons of a project were erased. */
export interface ErasureCount {
  readonly projectId: number
  readonly count: number
}

export interface ErasureTerms {
  /** Deletes only events and recordings; the person and its ids stay. */
  readonly keepsPerson: boolean
  /** Deletes events, rejects and the counts of flag calls. */
  readonly deletesEvents: boolean
  readonly deletesRecordings: boolean
}

/** How many rows an erasure found, each event once. */
export interface RemovedRows {
  readonly events: number
  /** Rows of import jobs that are not published. */
  readonly pendingEvents: number
  readonly recordings: number
  readonly rejectedEvents: number
}

export const noRemovedRows: RemovedRows = { events: 0, pendingEvents: 0, recordings: 0, rejectedEvents: 0 }

/** An erased person, with the terms of the request. */
export interface ErasedPerson extends ErasureTerms {
  readonly erasureId: number
  readonly uuid: string
  readonly requestedBy: Author | null
  readonly requestedAtMs: number
  /** When everything had been removed; null until then. */
  readonly doneAtMs: number | null
  /** Number of persons in the same request. */
  readonly personCount: number
  /** Rows removed for all persons of the request; null until they are counted. */
  readonly removed: RemovedRows | null
}

/** Where the log ended when persons were erased: the records of these persons before that are erased too. */
export interface LogEnds {
  readonly logId: string
  /** For each stream, the offset after its last record. */
  readonly endOffsets: Readonly<Record<LogStream, number>>
}

/** An erased distinct id, kept as long as the log may have records of it. */
export interface ErasedId extends LogEnds, Pick<ErasureTerms, 'deletesEvents' | 'deletesRecordings'> {
  readonly projectId: number
  readonly distinctId: string
}

/** An erasure as the worker carries it out. */
export interface PersonErasure extends ErasureTerms, LogEnds {
  readonly id: number
  readonly projectId: number
  /** The project's count of erasures: rows made with a lower count precede this erasure. */
  readonly erasures: number
  /** Rows of the mirror up to this version precede this erasure. */
  readonly mirrorVersion: number
  readonly isCounted: boolean
  readonly distinctIds: readonly string[]
  /** Uuids of the erased persons and of those merged into them, unless another person has the uuid now. Empty if persons stay. */
  readonly personUuids: readonly string[]
}

/** An erasure without the ids of its persons. */
export type ErasureOutline = Omit<PersonErasure, 'distinctIds' | 'personUuids'>

/** Decides which records of a chunk belong to erased persons. */
export class ErasedRecords {
  readonly #logId: string
  readonly #stream: LogStream
  readonly #byId: ReadonlyMap<string, readonly ErasedId[]>

  constructor(logId: string, stream: LogStream, ids: readonly ErasedId[]) {
    this.#logId = logId
    this.#stream = stream
    this.#byId = Map.groupBy(ids, buildKey)
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0
  }

  /** Whether the record at this offset was accepted before its distinct id was erased. */
  has(of: 'events' | 'recordings', projectId: number, distinctId: string, offset: number): boolean {
    if (this.isEmpty) return false
    return (this.#byId.get(buildKey({ projectId, distinctId })) ?? []).some(
      ({ logId, endOffsets, deletesEvents, deletesRecordings }) =>
        (of === 'events' ? deletesEvents : deletesRecordings) &&
        logId === this.#logId &&
        offset < (endOffsets[this.#stream] ?? 0),
    )
  }
}

function buildKey({ projectId, distinctId }: Pick<ErasedId, 'projectId' | 'distinctId'>): string {
  return `${projectId} ${distinctId}`
}
