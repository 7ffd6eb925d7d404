// Coordinates the lanes of a run that wait for the service. The reason is shown while any lane waits, and the first lane
// that gets through again wakes the other lanes. Source: docs/wire/import.md §2.5.

import { describeWait, type FetchClock, sleepUntil } from '#importer/fetch/waiting.ts'
import type { StageProgress } from '../job/progress.ts'

export interface ServiceWait {
  readonly reason: string
  readonly untilMs: number
  /** Whether the service named the time to wait, so that this lane must not retry sooner. */
  readonly isAsked: boolean
}

export class ServiceWaits {
  readonly #clock: FetchClock
  readonly #progress: Pick<StageProgress, 'waiting'>
  /** The waits by waiter. A waiter is listed from its first failure until it gets through, also while it retries. */
  readonly #open = new Map<object, ServiceWait & { readonly wake: AbortController }>()
  #count = 0

  constructor(clock: FetchClock, progress: Pick<StageProgress, 'waiting'>) {
    this.#clock = clock
    this.#progress = progress
  }

  /** @returns how many waits there were since the last call. */
  takeCount(): number {
    const count = this.#count
    this.#count = 0
    return count
  }

  /** @throws the signal's reason when it is aborted. */
  async wait(who: object, wait: ServiceWait, signal: AbortSignal): Promise<void> {
    this.#count++
    const wake = new AbortController()
    this.#open.set(who, { ...wait, wake })
    this.#show(wait)
    try {
      await sleepUntil(this.#clock, () => wait.untilMs, AbortSignal.any([signal, wake.signal]))
    } catch (error) {
      if (signal.aborted || !wake.signal.aborted) throw error
    }
  }

  /**
   * Wakes the other waiters, but only if `who` was waiting too: otherwise its success says nothing about failing batches.
   */
  gotThrough(who: object): void {
    if (!this.#open.delete(who)) return
    for (const { isAsked, wake } of this.#open.values()) if (!isAsked) wake.abort()
    this.#show([...this.#open.values()].at(-1) ?? null)
  }

  #show(wait: ServiceWait | null): void {
    this.#progress.waiting(wait === null ? null : describeWait(wait, this.#clock.nowMs()))
  }
}
