// When personal API keys were last used, right to a minute. Requests only say so here; it is written down a little later,
// so that no request waits for it, and whether that works changes nothing for them.

import type { Clock } from '#ports/clock.ts'
import type { PersonalKey, PersonalKeyStore } from '#ports/management-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'

export interface PersonalKeyUses {
  /** The key is being used now. */
  note(key: Pick<PersonalKey, 'id' | 'lastUsedAtMs'>): void
  /** Writes what is left. */
  close(): Promise<void>
}

export interface PersonalKeyUsesOptions {
  readonly management: Pick<PersonalKeyStore, 'savePersonalKeyUses'>
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Pick<Metrics, 'dependencyFailures'>
  /** From the first use that is not written yet to writing it: longer than that request takes. */
  readonly delayMs: number
}

/** A use this soon after one that was noted says nothing new. */
const resolutionMs = 60_000
const notedCountMax = 1_000

export function startPersonalKeyUses(options: PersonalKeyUsesOptions): PersonalKeyUses {
  const { management, clock, logger, metrics } = options
  /** By key id, the oldest first. */
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
      // It is left to the key's next use after its minute, since no request depends on it.
      const code = cause instanceof PortError ? cause.code : 'unavailable'
      metrics.dependencyFailures.inc({ port: 'management-store', code })
      logger.warn({ err: cause, keyCount: uses.length }, 'when personal keys were last used could not be written down')
    }
  }

  return {
    note: ({ id, lastUsedAtMs }) => {
      const nowMs = clock.nowMs()
      // Another process may have written a later one.
      const knownMs = Math.max(notedAtMs.get(id) ?? 0, lastUsedAtMs ?? 0)
      if (nowMs - knownMs < resolutionMs) return
      notedAtMs.delete(id)
      if (notedAtMs.size >= notedCountMax) notedAtMs.delete(notedAtMs.keys().next().value!)
      notedAtMs.set(id, nowMs)
      waiting.set(id, nowMs)
      timer ??= setTimeout(() => void flush(), options.delayMs).unref()
    },
    close: flush,
  }
}
