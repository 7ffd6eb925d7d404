// The latest metrics that each other process of an instance reported. The counters of a process stay when it ends: if a sum
// fell, it would look like a reset, and `rate()` would count the rest again. Its gauges are dropped, because the last
// reading of a process that is down or silent would look like a current reading.

import { AggregatorRegistry } from 'prom-client'

/** Metrics of a prom-client registry, as returned by `getMetricsAsJSON`. */
export type MetricsSnapshot = readonly object[]

export interface ProcessMetricsOptions {
  /** After this long without a report a process counts as silent. */
  readonly silentAfterMs: number
  readonly monotonicNowMs: () => number
}

export class ProcessMetrics {
  readonly #options: ProcessMetricsOptions
  readonly #latest = new Map<string, { readonly snapshot: MetricsSnapshot; readonly atMs: number }>()
  /** The counters of all processes that have ended, added up. */
  #counted: MetricsSnapshot = []

  constructor(options: ProcessMetricsOptions) {
    this.#options = options
  }

  /** @param process a name that is unique among live processes. */
  report(process: string, snapshot: MetricsSnapshot): void {
    this.#latest.set(process, { snapshot, atMs: this.#options.monotonicNowMs() })
  }

  /** Call it when a process has ended, even if that process never reported. */
  ended(process: string): void {
    const last = this.#latest.get(process)
    this.#latest.delete(process)
    if (last === undefined) return
    const both = AggregatorRegistry.aggregate([this.#counted, selectCumulative(last.snapshot)] as object[][])
    // `metric` already has the values. `get`, which a scrape would call to obtain them, is left out.
    this.#counted = both.getMetricsAsArray().map(metric => ({ ...metric, get: undefined }))
  }

  /** Whether the process has reported before but not for a while: it is stopped, swapped out, or stuck. */
  isSilent(process: string): boolean {
    const last = this.#latest.get(process)
    return last !== undefined && this.#isOld(last.atMs)
  }

  /** @param except a process to leave out, since it has newer metrics itself. */
  all(except?: string): readonly MetricsSnapshot[] {
    const snapshots = [...this.#latest]
      .filter(([process]) => process !== except)
      .map(([, { snapshot, atMs }]) => (this.#isOld(atMs) ? selectCumulative(snapshot) : snapshot))
    return [this.#counted, ...snapshots]
  }

  #isOld(atMs: number): boolean {
    return this.#options.monotonicNowMs() - atMs > this.#options.silentAfterMs
  }
}

/** The metrics that only grow. */
function selectCumulative(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(metric => ['counter', 'histogram'].includes((metric as { type: string }).type))
}
