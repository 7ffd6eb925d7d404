// Notices a process that still lives but says nothing any more: stopped, swapped out, or stuck in one call. Its last word
// is then no longer true. What follows from that is the caller's business.

export interface SilenceWatch {
  /** The process said something. */
  heard(): void
  stop(): void
}

/** Calls `onSilent` once for each silence of this length. Keeps no process alive. */
export function watchSilence(silentAfterMs: number, onSilent: () => void): SilenceWatch {
  const timer = setTimeout(onSilent, silentAfterMs)
  timer.unref()
  return {
    heard: () => void timer.refresh(),
    stop: () => clearTimeout(timer),
  }
}
