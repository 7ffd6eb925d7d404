// How large each cursor's next chunk is and how soon it may be read. Both depend on the time and size of its last chunks.

import type { ChunkSize } from './chunk-deps.ts'
import type { ProcessorLimits } from './processor-limits.ts'
import type { StreamCursor } from './stream-cursors.ts'

/** A slow or large chunk never makes the next chunk smaller than this. */
const recordCountMin = 50
const firstRecordCount = 500
/** An import chunk may take this many times the duration of a chunk of few live events, which is mostly fixed cost. */
const importToTrickle = 2
/** Weight of the latest chunk of few live events in the moving average. */
const trickleWeight = 0.3
/** Chunks aim slightly below their limits, since a chunk that turns out to be too large is applied twice. */
const aimedShare = 0.85

export class ChunkPace {
  readonly #limits: ProcessorLimits
  /** How many records the next chunk may have, by the name of its cursor. */
  readonly #recordCounts = new Map<string, number>()
  readonly #restUntilMs = new Map<string, number>()
  #lastLiveMs = Number.NEGATIVE_INFINITY
  /** Moving average of the duration of chunks of few live events: mostly the fixed cost of any chunk. */
  #trickleMs = 0

  constructor(limits: ProcessorLimits) {
    this.#limits = limits
  }

  /** How many records the cursor's next chunk may have. */
  recordCountMax({ name, takesDeferred }: StreamCursor): number {
    const first = takesDeferred ? recordCountMin : firstRecordCount
    return this.#recordCounts.get(name) ?? Math.min(first, this.#limits.recordCountMax)
  }

  /** How long until the cursor may be read again, in ms. */
  restMs({ name }: StreamCursor): number {
    return Math.max(0, (this.#restUntilMs.get(name) ?? 0) - performance.now())
  }

  /** Call it before the chunk is processed. */
  begin(cursor: StreamCursor, recordCount: number): PacedChunk {
    const chunk = new PacedChunk(this.#limits, cursor, recordCount)
    if (cursor.traffic === 'live' && recordCount > 0) this.#lastLiveMs = chunk.startedMs
    return chunk
  }

  /** Call it once the chunk has ended, committed or not. */
  adapt(chunk: PacedChunk): void {
    const { cursor, recordCount } = chunk
    const recordCountMax = this.recordCountMax(cursor)
    // It is unknown by how much the chunk exceeded the limit, but it is known how much of the chunk did fit.
    if (chunk.isTooLarge) this.#resize(cursor, chunk.largestPartCount)
    else if (chunk.largestShare > 1) this.#grow(chunk)
    else if (chunk.committedCount < recordCount) this.#resize(cursor, chunk.committedCount)
    else if (recordCount === recordCountMax) this.#grow(chunk)
    // A chunk without records only skipped deferred projects, and creates no data part in the event store.
    if (recordCount === 0 || recordCount >= recordCountMax / 4) return
    this.#restUntilMs.set(cursor.name, chunk.startedMs + this.#limits.restMs)
    if (cursor.traffic === 'live' && !cursor.takesDeferred) this.#noteTrickle(chunk.startedMs)
  }

  #noteTrickle(startedMs: number): void {
    const tookMs = Math.min(performance.now() - startedMs, this.#limits.liveChunkMs)
    this.#trickleMs += trickleWeight * (tookMs - this.#trickleMs)
  }

  /**
   * Live chunks grow as long as they fit into memory and one transaction. Chunks of imports and of deferred projects are also
   * limited in time.
   */
  #grow({ cursor, recordCount, largestShare, startedMs }: PacedChunk): void {
    const { traffic, takesDeferred } = cursor
    const growthMax = aimedShare / Math.max(largestShare, 0.001)
    const chunkMs = traffic === 'import' ? this.#importChunkMs(startedMs) : this.#limits.liveChunkMs
    const tookMs = Math.max(performance.now() - startedMs, 1)
    const growth = traffic === 'import' || takesDeferred ? Math.min(growthMax, chunkMs / tookMs) : growthMax
    this.#resize(cursor, recordCount * Math.min(Math.max(growth, 0.5), 1.5))
  }

  /**
   * Allows more time on a busy machine or a slow disk, where even a chunk of few events exceeds the usual time: smaller
   * chunks would not be faster, and the import would almost stop.
   */
  #importChunkMs(startedMs: number): number {
    const { importChunkMs, loneImportChunkMs, loneAfterMs } = this.#limits
    const usual = startedMs - this.#lastLiveMs > loneAfterMs ? loneImportChunkMs : importChunkMs
    return Math.max(usual, importToTrickle * this.#trickleMs)
  }

  #resize({ name }: StreamCursor, wanted: number): void {
    const recordCount = Math.min(Math.max(wanted, recordCountMin), this.#limits.recordCountMax)
    this.#recordCounts.set(name, Math.round(recordCount))
  }
}

/** The time and size of one chunk so far, over all of its parts. */
export class PacedChunk {
  readonly cursor: StreamCursor
  /** Records that were read. */
  readonly recordCount: number
  readonly startedMs = performance.now()
  readonly #limits: ProcessorLimits
  /** Whether a part had to be split in two. */
  isTooLarge = false
  /** The largest share of the limits that a part took; more than 1 is too large. */
  largestShare = 0
  committedCount = 0
  largestPartCount = 0

  constructor(limits: ProcessorLimits, cursor: StreamCursor, recordCount: number) {
    this.#limits = limits
    this.cursor = cursor
    this.recordCount = recordCount
  }

  noteSize(size: Pick<ChunkSize, 'rowCount' | 'textBytes'> | 'too_large'): void {
    if (size === 'too_large') {
      this.isTooLarge = true
      return
    }
    const { rowCountMax, textBytesMax } = this.#limits
    const share = Math.max(size.rowCount / rowCountMax, size.textBytes / textBytesMax)
    this.largestShare = Math.max(this.largestShare, share)
  }

  /** @param recordCount records of the part just committed. */
  noteCommitted(recordCount: number): void {
    this.committedCount = recordCount
    this.largestPartCount = Math.max(this.largestPartCount, recordCount)
  }

  /** Whether the second half of a chunk that was split may be processed at once; otherwise other streams come first. */
  mayGoOn(): boolean {
    return this.cursor.traffic === 'import' || performance.now() - this.startedMs < this.#limits.liveChunkMs
  }
}
