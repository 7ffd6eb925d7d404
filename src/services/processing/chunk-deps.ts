// The dependencies for taking a chunk through its steps (`process-one-chunk.ts`): stores, limits, and callbacks.

import type { MaybePromise } from '#core/maybe-promise.ts'
import type { ChunkOutcome } from '#core/processing/chunk.ts'
import type { ProcessedChunk } from '#core/processing/process-chunk.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventWriter } from '#ports/events/event-writer.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { LogChunk } from '#ports/log/event-log.ts'
import type { ChunkStore, LoadedChunk } from '#ports/state/chunk-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { FindImplicitJobs } from '../imports/implicit-jobs.ts'
import type { RunningCalls } from '../shared/running-calls.ts'

/** A point between two steps of a chunk, named by the step before it. */
export type FaultPoint = 'read' | 'load' | 'apply' | 'insert' | 'commit' | 'defer' | 'release'

/** The parts of the event store that processing uses. */
export type ProcessingEventStore = Pick<EventWriter, 'insert' | 'findChargedTimes' | 'findOverrides' | 'findFlagCalls'>

export interface ChunkDeps {
  readonly state: ChunkStore
  readonly events: ProcessingEventStore
  readonly geoip: Geoip | null
  /** The salt of a day that has not ended. May return it directly or as a promise. @throws PortError */
  readonly saltOf: (day: string) => MaybePromise<Uint8Array>
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
  readonly ownerId: string
  /** Id of the log that chunks are read from. */
  readonly logId: string
  readonly random: () => number
  readonly signal: AbortSignal
  /** How many state rows one transaction may write; a chunk that needs more is halved. A single record may write more. */
  readonly rowCountMax: number
  /** How much property text a chunk may load, and its rows may contain; a chunk that needs more is halved too. */
  readonly textBytesMax: number
  /** Called before anything is written, with the size of the chunk. */
  readonly onSized?: (size: ChunkSize | 'too_large') => void
  /** After this many conflicts in a row, a lone merge is given up, and any other chunk counts as failed. */
  readonly conflictTryCount: number
  /** A call of the event store that takes this long is reported as if the store were down, but still waited for. */
  readonly slowStoreMs: number
  readonly enterState: (state: 'waiting_for_state' | 'waiting_for_event_store') => void
  /** Whether an earlier worker may have written overrides to the event store without committing them. */
  readonly mayHaveBeenTried: () => boolean
  /** Finds the implicit jobs, for imports without a job; if absent, such imports belong to no job. */
  readonly implicitJobs?: FindImplicitJobs
  /** Whether rows that were stored before are rebuilt. */
  readonly isRestoring?: boolean
  /** Tracks each try from its load to its commit. */
  readonly underWay?: RunningCalls
  /** The name of the position that the chunk moves. */
  readonly cursor: string
  /** Whether a halved chunk continues after its first half; otherwise the rest is read again. Default: always. */
  readonly mayGoOn?: () => boolean
  /** The offset of the cursor's position as known to this worker: the end of the last part passed to `onCommitted`. */
  readonly position: () => number
  readonly onCommitted: (outcomes: readonly ChunkOutcome[], part: CommittedPart) => void
  readonly faultPoint?: (name: FaultPoint) => void | Promise<void>
}

/** A chunk, or the part of it that was committed in one transaction. */
export type CommittedPart = Pick<LogChunk, 'nextOffset' | 'records'>

export interface ChunkSize {
  /** How many state rows the part writes. */
  readonly rowCount: number
  /** Bytes of the loaded texts or of the texts in its rows, whichever is more. */
  readonly textBytes: number
  readonly loaded: LoadedChunk
  readonly processed: ProcessedChunk
}
