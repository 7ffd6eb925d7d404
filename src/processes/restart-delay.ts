// How long to wait before a process is started again: longer with each one that did not last, with jitter so that several
// do not start at the same moment.

const firstMs = 100
const longestMs = 10_000
/** A process that lived this long is started again after the first delay. */
const healthyAfterMs = 30_000

export class RestartDelay {
  readonly #random: () => number
  #failures = 0

  /** @param random 0 ≤ random < 1. */
  constructor(random: () => number) {
    this.#random = random
  }

  /** @param livedMs of the process that ended; 0 when it could not even be started. @returns ms. */
  next(livedMs: number): number {
    this.#failures = livedMs > healthyAfterMs ? 0 : this.#failures + 1
    const fullMs = Math.min(longestMs, firstMs * 2 ** Math.max(0, this.#failures - 1))
    return fullMs * (0.5 + this.#random() / 2)
  }
}
