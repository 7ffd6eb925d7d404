// Limits how fast events are sent: a token bucket whose rate grows while the service answers well, never above the rate
// that the service allows, and halves when the service is in trouble. Source: docs/wire/import.md §2.5 (rate), §3.1.

export const rateDefault = 1_000
/** The lowest rate, in events per second: at this rate, a batch of 5,000 is still sent every 100 s. */
const rateMin = 50
const growEveryMs = 60_000
const growth = 1.1
/** After trouble, the rate grows faster until it is back: most trouble is short, such as a restart or a busy disk. */
const returnEveryMs = 5_000
const returnGrowth = 1.5
/** If trouble returns during a recovery, the next recovery aims for this share of the earlier rate. */
const shareAgain = 0.75
/** Halve the rate at most this often: batches in flight together are refused together. */
const halveEveryMs = 5_000
/** Shorter answer times may double by chance, so they do not show that the service is in trouble. */
const slowAnswerMsMin = 500
const answerSmoothing = 0.2
/** The token bucket holds the events of this many seconds: a laptop waking from sleep must not send a flood. */
const burstSeconds = 1

export interface RateOptions {
  readonly nowMs: () => number
  /** Events per second at first. */
  readonly rate?: number
}

export class RateControl {
  readonly #nowMs: () => number
  #rate: number
  #cap = Number.POSITIVE_INFINITY
  /** May become negative: a batch is sent as a whole, and later batches wait until it is paid for. */
  #tokens = 0
  #filledMs: number
  #cleanSinceMs: number
  #halvedMs = Number.NEGATIVE_INFINITY
  /** The rate before the latest trouble; 0 if there was none. */
  #rateBefore = 0
  /** Whether the rate is growing back towards `#rateBefore`. */
  #isReturning = false
  /** Smoothed answer time; its lowest value is the reference, `#usualAnswerMs`. */
  #answerMs: number | null = null
  #usualAnswerMs = Number.POSITIVE_INFINITY

  constructor({ nowMs, rate = rateDefault }: RateOptions) {
    this.#nowMs = nowMs
    this.#rate = rate
    this.#filledMs = nowMs()
    this.#cleanSinceMs = nowMs()
  }

  /** Events per second. */
  get rate(): number {
    return Math.min(this.#rate, this.#cap)
  }

  /**
   * Takes the tokens for a batch.
   * @returns 0 if they were taken; otherwise how many ms to wait before asking again.
   */
  take(events: number): number {
    this.#fill()
    if (this.#tokens < 0) return Math.ceil((-this.#tokens / this.rate) * 1_000)
    this.#tokens -= events
    return 0
  }

  /** Returns the tokens of a batch that the service did not accept; they are taken again with the retry. */
  giveBack(events: number): void {
    this.#fill()
    this.#tokens = Math.min(this.rate * burstSeconds, this.#tokens + events)
  }

  /** @param answerMs the time between sending the last byte and the answer. */
  accepted(answerMs: number): void {
    const now = this.#nowMs()
    this.#answerMs = this.#answerMs === null ? answerMs : this.#answerMs + answerSmoothing * (answerMs - this.#answerMs)
    this.#usualAnswerMs = Math.min(this.#usualAnswerMs, Math.max(this.#answerMs, slowAnswerMsMin))
    if (this.#answerMs > 2 * this.#usualAnswerMs) {
      this.#halve(now)
      // Make the slower answer time the new usual one; otherwise one slow hour would bring the rate down to its minimum.
      this.#usualAnswerMs = this.#answerMs
    } else this.#grow(now)
  }

  /** Call when the service answered 429 or 503 without naming a rate. */
  refused(): void {
    this.#halve(this.#nowMs())
  }

  /** @param rate from the header `X-Import-Rate`, events per second. */
  limitTo(rate: number): void {
    this.#fill()
    this.#cap = Math.max(1, rate)
  }

  #grow(now: number): void {
    const isBelow = this.#rate < this.#rateBefore
    if (now - this.#cleanSinceMs < (isBelow ? returnEveryMs : growEveryMs)) return
    this.#fill()
    // The cap that the service names bounds growth, but does not lower `#rate`: the service may allow more again later.
    this.#rate = isBelow
      ? Math.min(this.#rate * returnGrowth, this.#rateBefore)
      : Math.max(this.#rate, Math.min(this.#rate * growth, this.#cap))
    this.#isReturning = isBelow
    this.#cleanSinceMs = now
  }

  #halve(now: number): void {
    this.#cleanSinceMs = now
    if (now - this.#halvedMs < halveEveryMs) return
    this.#halvedMs = now
    // Trouble during recovery shows that the earlier rate is too high now, but not by how much.
    this.#rateBefore = this.#isReturning
      ? Math.max(this.rate, this.#rateBefore * shareAgain)
      : Math.max(this.#rateBefore, this.#rate)
    this.#isReturning = false
    this.#fill()
    this.#rate = Math.max(Math.min(rateMin, this.rate), this.rate / 2)
  }

  #fill(): void {
    const now = this.#nowMs()
    // A clock that was set back must not take tokens away.
    const seconds = Math.max(0, now - this.#filledMs) / 1_000
    this.#tokens = Math.min(this.rate * burstSeconds, this.#tokens + seconds * this.rate)
    this.#filledMs = now
  }
}
