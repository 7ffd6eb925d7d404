// One watcher of the live view: what it may be shown now, what waits for it, and what it has to be given a count of. What
// matches is decided in `core/live`, who may watch in `live-events.ts`.

import type { CapturedEvent, CapturedReject, LogLane } from '#core/events/captured-event.ts'
import type { LiveFilter } from '#core/live/live-filter.ts'

/** `rate`: more than may be shown in a second; `slow`: the watcher takes too little; `too_large`: see `LiveMatch`. */
export const skipReasons = ['rate', 'slow', 'too_large'] as const
export type SkipReason = (typeof skipReasons)[number]
/** Since the last time it was told. */
export type Skipped = Readonly<Record<SkipReason, number>>

export type LiveEndReason = 'access_ended' | 'project_deleted' | 'too_slow' | 'stopping' | 'failed'

/** Offsets in the lanes that are watched; what is appended from there on is shown. */
export type LiveOffsets = Readonly<Partial<Record<LogLane, number>>>

export interface LiveReader {
  /** Before anything else. */
  begin(offsets: LiveOffsets): void
  /** @param taken called once nothing of it waits in this process any more. */
  write(messages: readonly Uint8Array[], taken: () => void): void
  /** Nothing comes behind this. What waits may still be taken for a moment. */
  end(last: Uint8Array): void
  /** What waits is given up. */
  drop(): void
}

/** What watchers are told, as bytes that all of them share. */
export interface LiveMessages {
  event(event: CapturedEvent, lane: LogLane, offset: number): Uint8Array
  reject(reject: CapturedReject, lane: LogLane, offset: number): Uint8Array
  skipped(counts: Skipped): Uint8Array
  /** Says that records were left out, without a number, since nobody counted them. */
  lost(lane: LogLane, reason: 'behind' | 'unreadable'): Uint8Array
  end(reason: LiveEndReason): Uint8Array
  readonly heartbeat: Uint8Array
}

export interface LiveRequest {
  readonly projectId: number
  readonly filter: LiveFilter
  /** Watchers that may watch for the same reason have the same: they are asked about once. */
  readonly accessKey: string
  /** Why it may not go on, or null. @throws PortError when that cannot be found out. */
  readonly whyNot: () => Promise<'access_ended' | 'project_deleted' | null>
}

/** Beyond it a watcher is shown nothing until it took some. One event more may wait, and one notice. */
const waitingBytesMax = 256 * 1024
/** Whoever takes nothing for so long is stuck. */
const stuckMs = 20_000
const heartbeatMs = 15_000

export class LiveWatcher {
  readonly request: LiveRequest
  /** Where it begins in each lane that it watches. */
  readonly from: ReadonlyMap<LogLane, number>
  /** When it was last known that it may watch. */
  allowedAtMs: number
  isGone = false
  readonly #reader: LiveReader
  readonly #messages: LiveMessages
  readonly #eventsPerSecondMax: number
  readonly #monotonicNowMs: () => number
  /** Written when the slice is over. */
  #batch: Uint8Array[] = []
  /** In this process, the batch included. */
  #waitingBytes = 0
  /** Events that may be shown now, with fractions. */
  #allowance: number
  #allowanceAtMs: number
  readonly #skipped: Record<SkipReason, number> = { rate: 0, slow: 0, too_large: 0 }
  #hasSkipped = false
  /** When it last took something, or had nothing to take. */
  #movedAtMs: number
  #wroteAtMs: number

  constructor(
    request: LiveRequest,
    from: ReadonlyMap<LogLane, number>,
    reader: LiveReader,
    options: {
      readonly messages: LiveMessages
      readonly eventsPerSecondMax: number
      readonly monotonicNowMs: () => number
    },
  ) {
    this.request = request
    this.from = from
    this.#reader = reader
    this.#messages = options.messages
    this.#eventsPerSecondMax = options.eventsPerSecondMax
    this.#monotonicNowMs = options.monotonicNowMs
    this.#allowance = options.eventsPerSecondMax
    const nowMs = options.monotonicNowMs()
    this.allowedAtMs = this.#allowanceAtMs = this.#movedAtMs = this.#wroteAtMs = nowMs
    reader.begin(Object.fromEntries(from))
  }

  isStuck(nowMs: number, forMs = stuckMs): boolean {
    return this.#waitingBytes > 0 && nowMs - this.#movedAtMs >= forMs
  }

  /** Whether it is shown one more event; if not, that is counted. */
  takesOneMore(nowMs: number): boolean {
    if (this.#waitingBytes >= waitingBytesMax) return this.skip('slow')
    const earned = ((nowMs - this.#allowanceAtMs) / 1_000) * this.#eventsPerSecondMax
    this.#allowance = Math.min(this.#allowance + earned, this.#eventsPerSecondMax)
    this.#allowanceAtMs = nowMs
    if (this.#allowance < 1) return this.skip('rate')
    this.#allowance--
    return true
  }

  skip(reason: SkipReason): false {
    this.#skipped[reason]++
    this.#hasSkipped = true
    return false
  }

  push(message: Uint8Array): void {
    if (this.#waitingBytes === 0) this.#movedAtMs = this.#monotonicNowMs()
    this.#batch.push(message)
    this.#waitingBytes += message.length
  }

  write(): void {
    const batch = this.#batch
    if (batch.length === 0) return
    const bytes = batch.reduce((sum, message) => sum + message.length, 0)
    this.#batch = []
    this.#wroteAtMs = this.#monotonicNowMs()
    this.#reader.write(batch, () => {
      this.#waitingBytes -= bytes
      this.#movedAtMs = this.#monotonicNowMs()
    })
  }

  /** Once a second: what was skipped since the last time, and a sign of life. */
  tick(nowMs: number): void {
    if (this.#waitingBytes >= waitingBytesMax) return
    this.#tellSkipped()
    if (nowMs - this.#wroteAtMs >= heartbeatMs) this.push(this.#messages.heartbeat)
    this.write()
  }

  end(reason: LiveEndReason): void {
    this.#tellSkipped()
    this.write()
    this.#reader.end(this.#messages.end(reason))
  }

  drop(): void {
    this.#reader.drop()
  }

  #tellSkipped(): void {
    if (!this.#hasSkipped) return
    this.push(this.#messages.skipped(this.#skipped))
    for (const reason of skipReasons) this.#skipped[reason] = 0
    this.#hasSkipped = false
  }
}
