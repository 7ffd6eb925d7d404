// Notices a process that still lives but says nothing any more: stopped, swapped out, or stuck in one call. Its last word
// is then no longer true.

import type { Logger } from '#telemetry/log.ts'

export interface SilenceWatch {
  /** The process said something. */
  heard(): void
  stop(): void
}

export interface SilentChildOptions {
  readonly name: string
  readonly logger: Logger
  /** A child that says nothing for this long is killed: whatever it does, it serves no one. */
  readonly silentAfterMs: number
  /** How long it may take to its first word, 5 minutes by default: a large store is opened as slowly each time. */
  readonly startMsMax?: number | undefined
  /** Has to end it in a way that a stopped process obeys. */
  readonly kill: () => void
}

const startDefaultMsMax = 300_000

/** Kills a child that has gone silent, so that whoever supervises it starts another. */
export function killWhenSilent(options: SilentChildOptions): SilenceWatch {
  const { name, logger, silentAfterMs, startMsMax = startDefaultMsMax, kill } = options
  const onSilent = () => {
    logger.error({ child: name, silentAfterMs }, 'a process does not answer any more; it is killed and started again')
    kill()
  }
  let watch = watchSilence(Math.max(silentAfterMs, startMsMax), onSilent)
  let hasSpoken = false
  return {
    heard: () => {
      if (hasSpoken) return watch.heard()
      hasSpoken = true
      watch.stop()
      watch = watchSilence(silentAfterMs, onSilent)
    },
    stop: () => watch.stop(),
  }
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
