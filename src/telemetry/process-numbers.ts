// The numbers of the other processes of an instance, as each reported them last. What a process counted stays when it ends,
// so that no sum falls, which would look like a counter that began again and make `rate()` count the rest once more. What it
// measured of itself goes with it: the last reading of a process that is down, or silent, looks like one of now.

import { AggregatorRegistry } from 'prom-client'

/** Numbers of a prom-client registry, as `getMetricsAsJSON` gives them. */
export type MetricsSnapshot = readonly object[]

export interface ProcessNumbersOptions {
  /** After this long without a report a process counts as silent. */
  readonly silentAfterMs: number
  readonly monotonicNowMs: () => number
}

export class ProcessNumbers {
  readonly #options: ProcessNumbersOptions
  readonly #latest = new Map<string, { readonly snapshot: MetricsSnapshot; readonly atMs: number }>()
  /** What all processes counted that have ended, added up. */
  #counted: MetricsSnapshot = []

  constructor(options: ProcessNumbersOptions) {
    this.#options = options
  }

  /** @param process a name of its own among those that live. */
  report(process: string, snapshot: MetricsSnapshot): void {
    this.#latest.set(process, { snapshot, atMs: this.#options.monotonicNowMs() })
  }

  /** Call it when a process has ended, even one that never reported. */
  ended(process: string): void {
    const last = this.#latest.get(process)
    this.#latest.delete(process)
    if (last === undefined) return
    const both = AggregatorRegistry.aggregate([this.#counted, countedOf(last.snapshot)] as object[][])
    // The values are in `metric` already; `get`, which a scrape would call for them, is left out.
    this.#counted = both.getMetricsAsArray().map(metric => ({ ...metric, get: undefined }))
  }

  /** It has reported, and not for a while: stopped, swapped out, or stuck. */
  isSilent(process: string): boolean {
    const last = this.#latest.get(process)
    return last !== undefined && this.#isOld(last.atMs)
  }

  /** @param except the process that knows its own numbers better. */
  all(except?: string): readonly MetricsSnapshot[] {
    const snapshots = [...this.#latest]
      .filter(([process]) => process !== except)
      .map(([, { snapshot, atMs }]) => (this.#isOld(atMs) ? countedOf(snapshot) : snapshot))
    return [this.#counted, ...snapshots]
  }

  #isOld(atMs: number): boolean {
    return this.#options.monotonicNowMs() - atMs > this.#options.silentAfterMs
  }
}

/** What only grows. */
function countedOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(metric => ['counter', 'histogram'].includes((metric as { type: string }).type))
}
