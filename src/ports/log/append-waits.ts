// Implements `maxWaitMs` of `LogReadOptions` for a log's reader: it waits for records to be appended. A call of `wakeUp`
// ends the wait. It also polls, since not every commit of another process sends a wake-up.

import type { LogStream } from '#core/events/log-stream.ts'
import type { LogChunk, LogReadOptions } from './event-log.ts'

export class AppendWaits {
  readonly #pollMs: number
  readonly #wakeUpCounts = new Map<LogStream, number>()
  readonly #sleepers = new Map<LogStream, Set<() => void>>()

  /** @param pollMs how often a read checks without a wake-up; never, when absent. */
  constructor(pollMs = Number.POSITIVE_INFINITY) {
    this.#pollMs = pollMs
  }

  /** Signals an append to the stream. Cheap, may be called at any time. */
  wakeUp(stream: LogStream): void {
    this.#wakeUpCounts.set(stream, this.#wakeUpCount(stream) + 1)
    for (const wake of this.#sleepers.get(stream) ?? []) wake()
  }

  /** Reads again until there are records, the time has passed or the signal aborts. */
  async read(
    stream: LogStream,
    fromOffset: number,
    { maxWaitMs = 0, signal }: Pick<LogReadOptions, 'maxWaitMs' | 'signal'>,
    readNow: () => Promise<LogChunk>,
  ): Promise<LogChunk> {
    const untilMs = performance.now() + maxWaitMs
    for (;;) {
      const wakeUpCount = this.#wakeUpCount(stream)
      const chunk = await readNow()
      const leftMs = untilMs - performance.now()
      if (chunk.nextOffset !== fromOffset || leftMs <= 0 || signal?.aborted) return chunk
      // Do not sleep after a wake-up during the read: the chunk may lack records that were appended meanwhile.
      if (this.#wakeUpCount(stream) === wakeUpCount) await this.#sleep(stream, Math.min(leftMs, this.#pollMs), signal)
    }
  }

  #wakeUpCount(stream: LogStream): number {
    return this.#wakeUpCounts.get(stream) ?? 0
  }

  #sleep(stream: LogStream, maxMs: number, signal: AbortSignal | undefined): Promise<void> {
    const sleepers = this.#sleepers.get(stream) ?? new Set()
    this.#sleepers.set(stream, sleepers)
    return new Promise(resolve => {
      const wake = () => {
        clearTimeout(timer)
        sleepers.delete(wake)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, maxMs)
      sleepers.add(wake)
      signal?.addEventListener('abort', wake)
    })
  }
}
