// Reports the progress of a fetch, and when no data has arrived for a long time.

import { formatCount } from '#core/format-count.ts'
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
  /** What the fetch waits for; null while data arrives. */
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

export function createFetchReporter(
  { onProgress, onNotice = () => undefined }: FetchListener,
  clock: Pick<FetchClock, 'nowMs'>,
  countParts: () => Readonly<Record<'done' | 'empty' | 'waiting', number>>,
) {
  let bytesReceived = 0
  let waiting: FetchWaiting | null = null
  /** The last failure, shown until data arrives again, so that it stays visible during a retry too. */
  let trouble: FetchWaiting | null = null
  let reportedMs = 0
  let successMs = clock.nowMs()
  let loudMs = successMs
  const reporter = {
    calls: 0,
    retries: 0,
    addBytes(bytes: number): void {
      bytesReceived += bytes
      trouble = null
      if (performance.now() - reportedMs > reportEveryMs) reporter.reportProgress()
    },
    /** @param now null when the wait has ended. */
    setWaiting(now: FetchWaiting | null): void {
      waiting = now
      reporter.reportProgress()
    },
    partEnded(): void {
      trouble = null
      successMs = clock.nowMs()
    },
    /** Reports a failure that will be retried at `failure.untilMs`. */
    reportRetry(failure: FetchWaiting): void {
      reporter.retries++
      trouble = failure
      reporter.reportProgress()
      const nowMs = clock.nowMs()
      if (nowMs - Math.max(successMs, loudMs) < loudEveryMs) return
      loudMs = nowMs
      const minutes = Math.round((nowMs - successMs) / 60_000)
      onNotice(
        `Nothing has come for ${formatCount(minutes, 'minute')}: ${failure.reason}. Still trying; Ctrl-C keeps the fetched data.`,
      )
    },
    notice: onNotice,
    reportProgress(): void {
      if (onProgress === undefined) return
      reportedMs = performance.now()
      const { done, empty, waiting: left } = countParts()
      const { calls, retries } = reporter
      onProgress({
        ...{ partsDone: done + empty, partsEmpty: empty, partsTotal: done + empty + left },
        ...{ bytesReceived, calls, retries, waiting: waiting ?? trouble },
      })
    },
  }
  return reporter
}
