// One watcher of the live view: what it may be shown now, what is buffered for it, and how many events it missed.
// `core/live` decides what matches, `live-events.ts` who may watch.

import type { CapturedEvent, CapturedReject } from '#core/events/captured-event.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { LiveFilter } from '#core/live/live-filter.ts'

/** `rate`: more than may be shown in a second; `slow`: the watcher takes too little; `too_large`: see `LiveMatch`. */
export const skipReasons = ['rate', 'slow', 'too_large'] as const
export type LiveSkipReason = (typeof skipReasons)[number]
/** How many events were skipped since the last counts that were sent to the watcher. */
export type LiveSkipCounts = Readonly<Record<LiveSkipReason, number>>

export type LiveEndReason = 'access_ended' | 'project_deleted' | 'too_slow' | 'stopping' | 'failed'

/** Offsets in the watched streams; records from there on are shown. */
export type LiveOffsets = Readonly<Record<LogStream, number>>

export interface LiveReader {
  /** Called before the other methods. */
  begin(offsets: LiveOffsets): void
  /** @param taken called once none of the messages is buffered in this process any more. */
  write(messages: readonly Uint8Array[], taken: () => void): void
  /** Sends the last message and ends. Buffered messages may still be taken for a moment. */
  end(last: Uint8Array): void
  /** Ends and discards what is buffered. */
  drop(): void
}

/** Encodes the messages to watchers, as bytes that all of them share. */
export interface LiveMessages {
  event(event: CapturedEvent, stream: LogStream, offset: number): Uint8Array
  reject(reject: CapturedReject, stream: LogStream, offset: number): Uint8Array
  skipped(counts: LiveSkipCounts): Uint8Array
  /** Reports that records were left out, without a number, since they were not counted. */
  lost(stream: LogStream, reason: 'behind' | 'unreadable'): Uint8Array
  end(reason: LiveEndReason): Uint8Array
  readonly heartbeat: Uint8Array
}

export interface LiveRequest {
  readonly projectId: number
  readonly filter: LiveFilter
  /** Identifies the reason why the watcher is allowed: one check serves all watchers with the same key. */
  readonly accessKey: string
  /** Why the watcher may not continue, or null when it may. @throws PortError when that cannot be determined. */
  readonly findEndReason: () => Promise<'access_ended' | 'project_deleted' | null>
}

/**
 * A watcher with more than this buffered is shown nothing until it takes some of it. One event and one notice may exceed
 * the limit.
 */
const waitingBytesMax = 256 * 1024
/** A watcher that takes nothing for this long is stuck. */
const stuckMs = 20_000
const heartbeatMs = 15_000

export interface LiveWatcherOptions {
  readonly messages: LiveMessages
  readonly eventsPerSecondMax: number
  readonly monotonicNowMs: () => number
}

export class LiveWatcher {
  readonly request: LiveRequest
  /** The first offset that is shown to the watcher, for each stream that it watches. */
  readonly from: ReadonlyMap<LogStream, number>
  /** When it was last known to be allowed to watch. */
  allowedAtMs: number
  isGone = false
  readonly #reader: LiveReader
  readonly #options: LiveWatcherOptions
  /** Messages to write at the end of the slice. */
  #batch: Uint8Array[] = []
  /** Bytes buffered in this process, including the batch. */
  #waitingBytes = 0
  /** How many events may be shown now, with fractions. */
  #allowance: number
  #allowanceAtMs: number
  readonly #skipped: Record<LiveSkipReason, number> = { rate: 0, slow: 0, too_large: 0 }
  #hasSkipped = false
  /** When it last took something or had nothing to take. */
  #movedAtMs: number
  #wroteAtMs: number

  constructor(
    request: LiveRequest,
    from: ReadonlyMap<LogStream, number>,
    reader: LiveReader,
    options: LiveWatcherOptions,
  ) {
    this.request = request
    this.from = from
    this.#reader = reader
    this.#options = options
    this.#allowance = options.eventsPerSecondMax
    const nowMs = options.monotonicNowMs()
    this.allowedAtMs = this.#allowanceAtMs = this.#movedAtMs = this.#wroteAtMs = nowMs
    reader.begin(Object.fromEntries(from))
  }

  isStuck(nowMs: number, forMs = stuckMs): boolean {
    return this.#waitingBytes > 0 && nowMs - this.#movedAtMs >= forMs
  }

  /** Whether it may be shown one more event; if not, the event is counted as skipped. */
  takesOneMore(nowMs: number): boolean {
    if (this.#waitingBytes >= waitingBytesMax) return this.skip('slow')
    const { eventsPerSecondMax } = this.#options
    const earned = ((nowMs - this.#allowanceAtMs) / 1_000) * eventsPerSecondMax
    this.#allowance = Math.min(this.#allowance + earned, eventsPerSecondMax)
    this.#allowanceAtMs = nowMs
    if (this.#allowance < 1) return this.skip('rate')
    this.#allowance--
    return true
  }

  skip(reason: LiveSkipReason): false {
    this.#skipped[reason]++
    this.#hasSkipped = true
    return false
  }

  push(message: Uint8Array): void {
    if (this.#waitingBytes === 0) this.#movedAtMs = this.#options.monotonicNowMs()
    this.#batch.push(message)
    this.#waitingBytes += message.length
  }

  write(): void {
    const batch = this.#batch
    if (batch.length === 0) return
    const bytes = batch.reduce((sum, message) => sum + message.length, 0)
    this.#batch = []
    this.#wroteAtMs = this.#options.monotonicNowMs()
    this.#reader.write(batch, () => {
      this.#waitingBytes -= bytes
      this.#movedAtMs = this.#options.monotonicNowMs()
    })
  }

  /** Call once a second: sends the counts of skipped events, and a heartbeat when one is due. */
  tick(nowMs: number): void {
    if (this.#waitingBytes >= waitingBytesMax) return
    this.#reportSkipped()
    if (nowMs - this.#wroteAtMs >= heartbeatMs) this.push(this.#options.messages.heartbeat)
    this.write()
  }

  end(reason: LiveEndReason): void {
    this.#reportSkipped()
    this.write()
    this.#reader.end(this.#options.messages.end(reason))
  }

  drop(): void {
    this.#reader.drop()
  }

  #reportSkipped(): void {
    if (!this.#hasSkipped) return
    this.push(this.#options.messages.skipped(this.#skipped))
    for (const reason of skipReasons) this.#skipped[reason] = 0
    this.#hasSkipped = false
  }
}
