// Reports the progress of a fetch, and when no data has arrived for a long time.

import type { FetchClock, FetchWaiting } from './waiting.ts'

export interface FetchProgress {
  readonly partsDone: number
  /** How many of `partsDone` have no data at the source. */
  readonly partsEmpty: number
  readonly partsTotal: number
  /** Bytes received over the network in this run. */
  readonly bytesReceived: number
  /** Calls made in this run. */
  readonly calls: number
  readonly retries: number
  /** Null while data arrives. */
  readonly waiting: FetchWaiting | null
}

export interface FetchListener {
  readonly onProgress?: (progress: FetchProgress) => void
  /** Receives lines for the user, such as that the fetch has waited long or that a window was split. */
  readonly onNotice?: (line: string) => void
}

/** The least time between two progress reports while bytes arrive. */
const reportEveryMs = 200
/** How often to repeat the notice that nothing arrives. */
const loudEveryMs = 15 * 60_000

export class FetchReporter {
  /** Calls made in this run. */
  calls = 0
  retries = 0
  readonly #listener: FetchListener
  readonly #clock: Pick<FetchClock, 'nowMs'>
  readonly #countParts: () => Readonly<Record<'done' | 'empty' | 'waiting', number>>
  #bytesReceived = 0
  #waiting: FetchWaiting | null = null
  /** The last failure, shown until data arrives again, so that it stays visible during a retry too. */
  #trouble: FetchWaiting | null = null
  #reportedMs = 0
  #successMs: number
  #loudMs: number

  constructor(
    listener: FetchListener,
    clock: Pick<FetchClock, 'nowMs'>,
    countParts: () => Readonly<Record<'done' | 'empty' | 'waiting', number>>,
  ) {
    this.#listener = listener
    this.#clock = clock
    this.#countParts = countParts
    this.#successMs = this.#loudMs = clock.nowMs()
  }

  addBytes(bytes: number): void {
    this.#bytesReceived += bytes
    this.#trouble = null
    if (performance.now() - this.#reportedMs > reportEveryMs) this.reportProgress()
  }

  /** @param waiting null when the wait has ended. */
  setWaiting(waiting: FetchWaiting | null): void {
    this.#waiting = waiting
    this.reportProgress()
  }

  partEnded(): void {
    this.#trouble = null
    this.#successMs = this.#clock.nowMs()
  }

  /** Reports a failure that will be retried at `trouble.untilMs`. */
  reportRetry(trouble: FetchWaiting): void {
    this.retries++
    this.#trouble = trouble
    this.reportProgress()
    const nowMs = this.#clock.nowMs()
    if (nowMs - Math.max(this.#successMs, this.#loudMs) < loudEveryMs) return
    this.#loudMs = nowMs
    const minutes = Math.round((nowMs - this.#successMs) / 60_000)
    this.notice(
      `Nothing has come for ${minutes} minutes: ${trouble.reason}. Still trying; Ctrl-C keeps the fetched data.`,
    )
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
      ...{ partsDone: done + empty, partsEmpty: empty, partsTotal: done + empty + waiting },
      ...{ bytesReceived: this.#bytesReceived, calls: this.calls, retries: this.retries },
      waiting: this.#waiting ?? this.#trouble,
    })
  }
}
