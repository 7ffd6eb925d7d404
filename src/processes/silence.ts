// Detects a process that is alive but no longer sends anything: stopped, swapped out, or stuck in one call. Its last report
// is then no longer true.

import type { Logger } from '#telemetry/log.ts'

export interface SilenceWatch {
  /** To be called when the process has sent something. */
  heard(): void
  stop(): void
}

export interface SilentChildOptions {
  readonly name: string
  readonly logger: Logger
  /** A child that sends nothing for this long is killed, since it is of no use in that state. */
  readonly silentAfterMs: number
  /**
   * How long the child's first message may take; 5 minutes by default, since a restarted child would open a large store
   * just as slowly.
   */
  readonly startMsMax?: number | undefined
  /** Must end the child in a way that works on a stopped process too. */
  readonly kill: () => void
}

const startDefaultMsMax = 300_000

/** Kills a child that has gone silent, so that its supervisor starts another child. */
export function killSilentChild(options: SilentChildOptions): SilenceWatch {
  const { name, logger, silentAfterMs, startMsMax = startDefaultMsMax, kill } = options
  const onSilent = () => {
    logger.error({ child: name, silentAfterMs }, 'process no longer responds; killing and restarting it')
    kill()
  }
  let watch = watchForSilence(Math.max(silentAfterMs, startMsMax), onSilent)
  let hasSpoken = false
  return {
    heard: () => {
      if (hasSpoken) return watch.heard()
      hasSpoken = true
      watch.stop()
      watch = watchForSilence(silentAfterMs, onSilent)
    },
    stop: () => watch.stop(),
  }
}

/**
 * A silence is this many ticks without a message: four quarters, and one more since the first may come right after a
 * message.
 */
const turnCount = 5

/**
 * Calls `onSilent` once for each silence of this length, up to a quarter late. Counts ticks instead of time: if this
 * process was itself stopped, it reads the messages that arrived in the meantime before the time of the stop counts as
 * silence. The timer does not keep the process alive.
 */
export function watchForSilence(silentAfterMs: number, onSilent: () => void): SilenceWatch {
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
