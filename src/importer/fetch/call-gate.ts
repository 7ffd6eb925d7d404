// Admits requests to a source one at a time, within its rate limits and outside the pauses that it asked for.

import { type CallLimits, isLongWait, nextCallAtMs } from './call-limits.ts'
import { type FetchWaiting, sourceLimit } from './describe-wait.ts'
import { type FetchClock, sleepUntil } from './fetch-clock.ts'
import type { FetchState } from './fetch-state.ts'

export class CallGate {
  readonly #limits: CallLimits
  readonly #state: FetchState
  readonly #clock: FetchClock
  readonly #onWaiting: (waiting: FetchWaiting | null) => void
  #pause: FetchWaiting = { reason: '', untilMs: 0 }
  #turn: Promise<void> = Promise.resolve()

  constructor(
    limits: CallLimits,
    state: FetchState,
    clock: FetchClock,
    onWaiting: (waiting: FetchWaiting | null) => void,
  ) {
    this.#limits = limits
    this.#state = state
    this.#clock = clock
    this.#onWaiting = onWaiting
  }

  /** Blocks calls until `waiting.untilMs`, unless a longer pause is set already. */
  pause(waiting: FetchWaiting): void {
    if (waiting.untilMs > this.#pause.untilMs) this.#pause = waiting
  }

  /** Resolves when a call may be made, and counts it. */
  take(signal: AbortSignal): Promise<void> {
    const turn = this.#turn.then(() => this.#wait(signal))
    // A failure reaches only its own caller; the next caller just waits for it to settle.
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  /** For requests that count towards no limit. */
  untilPauseEnds(signal: AbortSignal): Promise<void> {
    return sleepUntil(this.#clock, () => this.#pause.untilMs, signal)
  }

  async #wait(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const readWaiting = () => this.#waiting()
    if (isLongWait(readWaiting().untilMs, this.#clock.nowMs())) this.#onWaiting(readWaiting())
    await sleepUntil(this.#clock, () => readWaiting().untilMs, signal)
    this.#onWaiting(null)
    this.#state.addCall(this.#clock.nowMs())
  }

  #waiting(): FetchWaiting {
    const nowMs = this.#clock.nowMs()
    const limitMs = nextCallAtMs(this.#state.callsMs(), this.#limits, nowMs)
    return this.#pause.untilMs > limitMs ? this.#pause : { reason: sourceLimit, untilMs: limitMs }
  }
}
