// How fast events may be sent: a token bucket whose rate grows while all is well and halves when the service is in
// trouble; what the service allows is the upper bound. Source: docs/wire/import.md §2.5 (rate), §3.1.

export const rateDefault = 1_000
/** Events per second, so that a batch of 5,000 still goes out every 100 s. */
const rateMin = 50
const growEveryMs = 60_000
const growth = 1.1
/** The way back to a rate that was well before: trouble is mostly a moment, such as a restart or a busy disk. */
const returnEveryMs = 5_000
const returnGrowth = 1.5
/** The share of the earlier rate that is tried next when trouble comes again on the way back to it. */
const shareAgain = 0.75
/** Refusals of batches that were on their way together are one sign of trouble, not many. */
const halveEveryMs = 5_000
/** Shorter answers mean nothing: they double by chance. */
const slowAnswerMsMin = 500
const answerSmoothing = 0.2
/** The bucket never holds more than this many seconds of events, or a laptop that slept would send a flood. */
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
  /** May fall below 0: a batch goes out as a whole, and the next ones wait for it. */
  #tokens = 0
  #filledMs: number
  #cleanSinceMs: number
  #halvedMs = Number.NEGATIVE_INFINITY
  /** What the rate was before the trouble that it now comes back from; 0 before any. */
  #rateBefore = 0
  /** Whether it grew since it was halved. */
  #isReturning = false
  /** Smoothed time of answers, and its smallest value so far, with which it is compared. */
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
   * Takes the room of a batch. When it returns more than 0, nothing was taken: wait so long and ask again.
   * @returns ms.
   */
  take(events: number): number {
    this.#fill()
    if (this.#tokens < 0) return Math.ceil((-this.#tokens / this.rate) * 1_000)
    this.#tokens -= events
    return 0
  }

  /** Puts back the room of a batch that the service did not take: it is paid for when it goes out again. */
  giveBack(events: number): void {
    this.#fill()
    this.#tokens = Math.min(this.rate * burstSeconds, this.#tokens + events)
  }

  /** @param answerMs from the last byte sent to the answer. */
  accepted(answerMs: number): void {
    const now = this.#nowMs()
    this.#answerMs = this.#answerMs === null ? answerMs : this.#answerMs + answerSmoothing * (answerMs - this.#answerMs)
    this.#usualAnswerMs = Math.min(this.#usualAnswerMs, Math.max(this.#answerMs, slowAnswerMsMin))
    if (this.#answerMs > 2 * this.#usualAnswerMs) {
      this.#halve(now)
      // From here on the slower answers are the usual ones; otherwise one slow hour would bring the rate to its minimum.
      this.#usualAnswerMs = this.#answerMs
    } else this.#grow(now)
  }

  /** The service answered 429 or 503, without a word of the rate that it takes. */
  refused(): void {
    this.#halve(this.#nowMs())
  }

  /** @param rate of the header `X-Import-Rate`, events per second. */
  limitTo(rate: number): void {
    this.#fill()
    this.#cap = Math.max(1, rate)
  }

  #grow(now: number): void {
    const isBelow = this.#rate < this.#rateBefore
    if (now - this.#cleanSinceMs < (isBelow ? returnEveryMs : growEveryMs)) return
    this.#fill()
    // What the service allows at the moment bounds the growth, but a rate that was well is kept for when it allows more.
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
    // Trouble on the way back says that the rate of before is too much now, but not by how much.
    this.#rateBefore = this.#isReturning
      ? Math.max(this.rate, this.#rateBefore * shareAgain)
      : Math.max(this.#rateBefore, this.#rate)
    this.#isReturning = false
    this.#fill()
    this.#rate = Math.max(Math.min(rateMin, this.rate), this.rate / 2)
  }

  #fill(): void {
    const now = this.#nowMs()
    // A clock that was set back gives nothing, and takes nothing.
    const seconds = Math.max(0, now - this.#filledMs) / 1_000
    this.#tokens = Math.min(this.rate * burstSeconds, this.#tokens + seconds * this.rate)
    this.#filledMs = now
  }
}
