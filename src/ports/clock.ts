/** The source of the current time, in epoch ms (UTC). Tests inject a clock that they can move. */
export interface Clock {
  nowMs(): number
}

export interface Timer {
  cancel(): void
}

/** Repeated calls and time limits, which never keep a process alive. Tests inject timers that they can move. */
export interface Timers {
  /** Calls the callback repeatedly until cancelled. */
  startTimer(callback: () => void, everyMs: number): Timer
  /** Calls the callback once, unless cancelled before. */
  startTimeout(callback: () => void, afterMs: number): Timer
}
