// Timers, the counterpart of `Clock`: repeated calls and time limits. They never keep a process alive. Tests inject
// timers that they can move.

export interface Timer {
  cancel(): void
}

export interface Timers {
  /** Calls the callback repeatedly until cancelled. */
  startTimer(callback: () => void, everyMs: number): Timer
  /** Calls the callback once, unless cancelled before. */
  startTimeout(callback: () => void, afterMs: number): Timer
}
