// Records when personal API keys and sessions were last used, to the minute. Requests only note a use; it is written a
// little later, so that no request waits for the write or fails with it.

import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'

export type SecretUses = ReturnType<typeof startSecretUseRecorder>

export interface SecretUsesOptions {
  /** Moves the stored times forward, never back. */
  readonly save: (uses: readonly { id: string; usedAtMs: number }[]) => Promise<void>
  /** Names in the log what was used. */
  readonly what: 'personal keys' | 'sessions'
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'dependencyFailures'>
  /** How long after the first unwritten use all unwritten uses are written: longer than the request of that use takes. */
  readonly delayMs: number
}

/** A use this soon after a noted use is not noted again. */
const resolutionMs = 60_000
const notedCountMax = 1_000

export function startSecretUseRecorder({ save, what, clock, logger, metrics, delayMs }: SecretUsesOptions) {
  /** By id, oldest first. */
  const notedAtMs = new Map<string, number>()
  let waiting = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined

  const flush = async () => {
    clearTimeout(timer)
    timer = undefined
    if (waiting.size === 0) return
    const uses = Array.from(waiting, ([id, usedAtMs]) => ({ id, usedAtMs }))
    waiting = new Map()
    try {
      await save(uses)
    } catch (cause) {
      // A failed write is not retried, since no request depends on it: the next use that is noted is written again.
      const code = cause instanceof PortError ? cause.code : 'unavailable'
      metrics.dependencyFailures.inc({ port: 'management-store', code })
      logger.warn({ err: cause, count: uses.length }, `could not save when ${what} were last used`)
    }
  }

  return {
    /** Notes that something is used now. */
    note({ id, lastUsedAtMs }: { readonly id: string; readonly lastUsedAtMs: number | null }): void {
      const nowMs = clock.nowMs()
      // Another process may have written a later use.
      const knownMs = Math.max(notedAtMs.get(id) ?? 0, lastUsedAtMs ?? 0)
      if (nowMs - knownMs < resolutionMs) return
      notedAtMs.delete(id)
      if (notedAtMs.size >= notedCountMax) notedAtMs.delete(notedAtMs.keys().next().value!)
      notedAtMs.set(id, nowMs)
      waiting.set(id, nowMs)
      timer ??= setTimeout(() => void flush(), delayMs).unref()
    },
    /** Writes the remaining uses. */
    close: flush,
  }
}
