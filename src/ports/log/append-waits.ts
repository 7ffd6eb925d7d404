// How a log's reader keeps what `LogReadOptions` promises of `maxWaitMs`: it waits for records that are appended. A nudge
// wakes it, and it also polls, since not every commit of another process sends a nudge.

import type { LogStream } from '#core/events/log-stream.ts'
import type { LogChunk, LogReadOptions } from './event-log.ts'

export class AppendWaits {
  readonly #pollMs: number
  readonly #nudgeCounts = new Map<LogStream, number>()
  readonly #sleepers = new Map<LogStream, Set<() => void>>()

  /** @param pollMs how often a read looks without a nudge; never, when absent. */
  constructor(pollMs = Number.POSITIVE_INFINITY) {
    this.#pollMs = pollMs
  }

  /** Something was appended to the stream. Cheap, may be called at any time. */
  nudge(stream: LogStream): void {
    this.#nudgeCounts.set(stream, this.#nudgeCount(stream) + 1)
    for (const wake of this.#sleepers.get(stream) ?? []) wake()
  }

  /** Reads again until something is there, the time is over or the signal aborts. */
  async read(
    stream: LogStream,
    fromOffset: number,
    { maxWaitMs = 0, signal }: Pick<LogReadOptions, 'maxWaitMs' | 'signal'>,
    readNow: () => Promise<LogChunk>,
  ): Promise<LogChunk> {
    const untilMs = performance.now() + maxWaitMs
    for (;;) {
      const nudgeCount = this.#nudgeCount(stream)
      const chunk = await readNow()
      const leftMs = untilMs - performance.now()
      if (chunk.nextOffset !== fromOffset || leftMs <= 0 || signal?.aborted) return chunk
      // What was appended while it read may not be in the chunk.
      if (this.#nudgeCount(stream) === nudgeCount) await this.#sleep(stream, Math.min(leftMs, this.#pollMs), signal)
    }
  }

  #nudgeCount(stream: LogStream): number {
    return this.#nudgeCounts.get(stream) ?? 0
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
