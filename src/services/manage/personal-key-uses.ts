// Records when personal API keys were last used, to the minute. Requests only note a use; it is written a little later,
// so that no request waits for the write or fails with it.

import type { PersonalKey } from '#core/personal-key.ts'
import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { PersonalKeyStore } from '#ports/state/project-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'

export type PersonalKeyUses = ReturnType<typeof startPersonalKeyUseRecorder>

export interface PersonalKeyUsesOptions {
  readonly management: Pick<PersonalKeyStore, 'savePersonalKeyUses'>
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'dependencyFailures'>
  /** How long after the first unwritten use all unwritten uses are written: longer than the request of that use takes. */
  readonly delayMs: number
}

/** A use this soon after a noted use is not noted again. */
const resolutionMs = 60_000
const notedCountMax = 1_000

export function startPersonalKeyUseRecorder(options: PersonalKeyUsesOptions) {
  const { management, clock, logger, metrics } = options
  /** By key id, oldest first. */
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
      await management.savePersonalKeyUses(uses)
    } catch (cause) {
      // A failed write is not retried, since no request depends on it: the key's next use that is noted is written again.
      const code = cause instanceof PortError ? cause.code : 'unavailable'
      metrics.dependencyFailures.inc({ port: 'management-store', code })
      logger.warn({ err: cause, keyCount: uses.length }, 'could not save when personal keys were last used')
    }
  }

  return {
    /** Notes that the key is used now. */
    note({ id, lastUsedAtMs }: Pick<PersonalKey, 'id' | 'lastUsedAtMs'>): void {
      const nowMs = clock.nowMs()
      // Another process may have written a later use.
      const knownMs = Math.max(notedAtMs.get(id) ?? 0, lastUsedAtMs ?? 0)
      if (nowMs - knownMs < resolutionMs) return
      notedAtMs.delete(id)
      if (notedAtMs.size >= notedCountMax) notedAtMs.delete(notedAtMs.keys().next().value!)
      notedAtMs.set(id, nowMs)
      waiting.set(id, nowMs)
      timer ??= setTimeout(() => void flush(), options.delayMs).unref()
    },
    /** Writes the remaining uses. */
    close: flush,
  }
}
