// What people are told while a fetch runs: its progress, and that nothing has come for long.

import type { FetchWaiting } from './describe-wait.ts'
import type { FetchClock } from './fetch-clock.ts'

export interface FetchProgress {
  readonly partsDone: number
  /** How many of these the source has no data for. */
  readonly partsEmpty: number
  readonly partsTotal: number
  /** How many bytes came over the wire in this run. */
  readonly bytesReceived: number
  /** How many calls this run has made. */
  readonly calls: number
  readonly retries: number
  /** Null while something comes. */
  readonly waiting: FetchWaiting | null
}

export interface FetchListener {
  readonly onProgress?: (progress: FetchProgress) => void
  /** Lines for people: that it has been waiting for long, that a window was split. */
  readonly onNotice?: (line: string) => void
}

interface PartCounts {
  readonly done: number
  readonly empty: number
  readonly waiting: number
}

/** Progress is told so often while bytes come. */
const reportEveryMs = 200
/** Said so often while nothing comes. */
const loudEveryMs = 15 * 60_000

export class FetchReporter {
  readonly #listener: FetchListener
  readonly #clock: Pick<FetchClock, 'nowMs'>
  readonly #countParts: () => PartCounts
  #bytesReceived = 0
  #calls = 0
  #retries = 0
  #waiting: FetchWaiting | null = null
  /** The last failure, shown until something comes again: between two tries nothing is waited for. */
  #trouble: FetchWaiting | null = null
  #reportedMs = 0
  #successMs: number
  #loudMs: number

  constructor(listener: FetchListener, clock: Pick<FetchClock, 'nowMs'>, countParts: () => PartCounts) {
    this.#listener = listener
    this.#clock = clock
    this.#countParts = countParts
    this.#successMs = clock.nowMs()
    this.#loudMs = this.#successMs
  }

  /** How many calls were made. */
  get calls(): number {
    return this.#calls
  }

  addCall(): void {
    this.#calls++
  }

  addBytes(bytes: number): void {
    this.#bytesReceived += bytes
    this.#trouble = null
    if (performance.now() - this.#reportedMs > reportEveryMs) this.reportProgress()
  }

  addRetry(): void {
    this.#retries++
  }

  /** @param waiting null when it goes on. */
  setWaiting(waiting: FetchWaiting | null): void {
    this.#waiting = waiting
    this.reportProgress()
  }

  /** A part has ended. */
  partEnded(): void {
    this.#trouble = null
    this.#successMs = this.#clock.nowMs()
  }

  /** Something failed and is tried again at a time. */
  reportRetry(trouble: FetchWaiting): void {
    this.#retries++
    this.#trouble = trouble
    this.reportProgress()
    const nowMs = this.#clock.nowMs()
    if (nowMs - Math.max(this.#successMs, this.#loudMs) < loudEveryMs) return
    this.#loudMs = nowMs
    const minutes = Math.round((nowMs - this.#successMs) / 60_000)
    this.notice(`Nothing has come for ${minutes} minutes: ${trouble.reason}. Still trying; Ctrl-C keeps what is there.`)
  }

  notice(line: string): void {
    this.#listener.onNotice?.(line)
  }

  reportProgress(): void {
    const { onProgress } = this.#listener
    if (onProgress === undefined) return
    this.#reportedMs = performance.now()
    const { done, empty, waiting } = this.#countParts()
    onProgress({
      partsDone: done + empty,
      partsEmpty: empty,
      partsTotal: done + empty + waiting,
      bytesReceived: this.#bytesReceived,
      calls: this.#calls,
      retries: this.#retries,
      waiting: this.#waiting ?? this.#trouble,
    })
  }
}
