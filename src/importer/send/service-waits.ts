// The lanes of a run that wait for the service, which is one and the same for all of them: the reason is shown as long as
// any of them waits, and the first that gets through again wakes the others. Source: docs/wire/import.md §2.5.

import { describeWait } from '#importer/fetch/describe-wait.ts'
import { type FetchClock, sleepUntil } from '../fetch/fetch-clock.ts'
import type { StageProgress } from '../job/progress.ts'

export interface ServiceWait {
  readonly reason: string
  readonly untilMs: number
  /** The service said itself how long, so nobody comes back sooner. */
  readonly isAsked: boolean
}

export class ServiceWaits {
  readonly #clock: FetchClock
  readonly #progress: Pick<StageProgress, 'waiting'>
  /** By whoever waits, from its first failure until it gets through: between two tries nothing is better yet. */
  readonly #open = new Map<object, ServiceWait & { readonly wake: AbortController }>()

  constructor(clock: FetchClock, progress: Pick<StageProgress, 'waiting'>) {
    this.#clock = clock
    this.#progress = progress
  }

  /** @throws the signal's reason when it is aborted. */
  async wait(who: object, wait: ServiceWait, signal: AbortSignal): Promise<void> {
    const wake = new AbortController()
    this.#open.set(who, { ...wait, wake })
    this.#show(wait)
    try {
      await sleepUntil(this.#clock, () => wait.untilMs, AbortSignal.any([signal, wake.signal]))
    } catch (error) {
      if (signal.aborted || !wake.signal.aborted) throw error
    }
  }

  /** Whoever never waited wakes nobody: what goes well beside it says nothing of a batch that the service fails at. */
  gotThrough(who: object): void {
    if (!this.#open.delete(who)) return
    for (const { isAsked, wake } of this.#open.values()) if (!isAsked) wake.abort()
    this.#show([...this.#open.values()].at(-1) ?? null)
  }

  #show(wait: ServiceWait | null): void {
    this.#progress.waiting(wait === null ? null : describeWait(wait, this.#clock.nowMs()))
  }
}
