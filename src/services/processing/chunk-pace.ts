// How large each cursor's next chunk is and how soon it may be read. Both follow from what its last chunks took.

import type { ChunkSize } from './chunk-deps.ts'
import type { ProcessorLimits } from './processor-limits.ts'
import type { StreamCursor } from './stream-cursors.ts'

/** A chunk is never made smaller than this for being slow or large. */
const recordCountMin = 50
const firstRecordCount = 500
/** How much longer than a chunk of few live events one of an import may take: half of it is then what any chunk takes. */
const importToTrickle = 2
/** Weight of the latest chunk of few live events among those before. */
const trickleWeight = 0.3
/** Chunks aim a little below their bounds, since a chunk that turns out to write too much is applied twice. */
const aimedShare = 0.85

export class ChunkPace {
  readonly #limits: ProcessorLimits
  /** Records of the next chunk, by the name of its cursor. */
  readonly #recordCounts = new Map<string, number>()
  readonly #restUntilMs = new Map<string, number>()
  #lastLiveMs = Number.NEGATIVE_INFINITY
  /** What chunks of few live events took of late; nearly all of that a chunk of any size takes. */
  #trickleMs = 0

  constructor(limits: ProcessorLimits) {
    this.#limits = limits
  }

  /** How many records the cursor's next chunk may have. */
  recordCountMax({ name, takesDeferred }: StreamCursor): number {
    const first = takesDeferred ? recordCountMin : firstRecordCount
    return this.#recordCounts.get(name) ?? Math.min(first, this.#limits.recordCountMax)
  }

  /** How long the cursor must not be read yet, in ms. */
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
    // How far over the limit a chunk was is not known, but how much of it did fit is.
    if (chunk.isTooLarge) this.#resize(cursor, chunk.largestPartCount)
    else if (chunk.largestShare > 1) this.#grow(chunk)
    else if (chunk.committedCount < recordCount) this.#resize(cursor, chunk.committedCount)
    else if (recordCount === recordCountMax) this.#grow(chunk)
    // A chunk without records only passed deferred projects by, and becomes no part of the event store.
    if (recordCount === 0 || recordCount >= recordCountMax / 4) return
    this.#restUntilMs.set(cursor.name, chunk.startedMs + this.#limits.restMs)
    if (cursor.traffic === 'live' && !cursor.takesDeferred) this.#noteTrickle(chunk.startedMs)
  }

  #noteTrickle(startedMs: number): void {
    const tookMs = Math.min(performance.now() - startedMs, this.#limits.liveChunkMs)
    this.#trickleMs += trickleWeight * (tookMs - this.#trickleMs)
  }

  /**
   * Live chunks grow as long as memory and one transaction hold what they take. Chunks of imports and of deferred projects
   * also keep to their time.
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
   * On a busy machine or a slow disk, a chunk of few events takes longer than imports may take: shorter ones would not be
   * faster, and the import would all but stand still.
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

/** What one chunk has taken so far, over all of its parts. */
export class PacedChunk {
  readonly cursor: StreamCursor
  /** Records that were read. */
  readonly recordCount: number
  readonly startedMs = performance.now()
  readonly #limits: ProcessorLimits
  /** Whether a part had to be cut in two. */
  isTooLarge = false
  /** The largest share of its bounds that a part took; more than 1 is too much. */
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

  /** @param recordCount records of the part that was committed last. */
  noteCommitted(recordCount: number): void {
    this.committedCount = recordCount
    this.largestPartCount = Math.max(this.largestPartCount, recordCount)
  }

  /** Whether a chunk that was cut in two may go on after its first part. */
  mayGoOn(): boolean {
    return this.cursor.traffic === 'import' || performance.now() - this.startedMs < this.#limits.liveChunkMs
  }
}
