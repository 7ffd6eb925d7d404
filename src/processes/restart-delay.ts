// How long to wait before a process is restarted: longer after each short-lived one, with jitter.

import { backOffMs } from '#core/back-off.ts'

const delays = { firstMs: 100, longestMs: 10_000 }
/** A process that lived this long is restarted after the first delay. */
const healthyAfterMs = 30_000

export class RestartDelay {
  readonly #random: () => number
  #failures = 0

  /** @param random 0 ≤ random < 1. */
  constructor(random: () => number) {
    this.#random = random
  }

  /** @param livedMs how long the process lived; 0 if it could not be started. @returns the delay in ms. */
  next(livedMs: number): number {
    this.#failures = livedMs > healthyAfterMs ? 0 : this.#failures + 1
    return backOffMs(delays, Math.max(0, this.#failures - 1), this.#random())
  }
}
