// Notices a process that still lives but says nothing any more: stopped, swapped out, or stuck in one call. Its last word
// is then no longer true. What follows from that is the caller's business.

export interface SilenceWatch {
  /** The process said something. */
  heard(): void
  stop(): void
}

/** A silence is this many turns of the timer without a word, the first of which may have come at once. */
const turnCount = 5

/**
 * Calls `onSilent` once for each silence of this length, up to a quarter late. Counted in turns of this process: when it was
 * stopped itself, it hears what was said meanwhile before it takes that time for a silence. Keeps no process alive.
 */
export function watchSilence(silentAfterMs: number, onSilent: () => void): SilenceWatch {
  let silentTurns = 0
  const timer = setInterval(
    () => {
      if (++silentTurns === turnCount) onSilent()
    },
    silentAfterMs / (turnCount - 1),
  )
  timer.unref()
  return {
    heard: () => {
      silentTurns = 0
    },
    stop: () => clearInterval(timer),
  }
}
