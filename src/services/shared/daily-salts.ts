// Remembers the salts of the days that are open: each is read once, and forgotten when its day closes. Source:
// docs/wire/ingestion.md 13.

import { closesAtMs } from '#core/cookieless/visitor-day.ts'
import type { Clock } from '#ports/clock.ts'
import type { CookielessSalts } from '#ports/state/cookieless-salts.ts'
import type { Timers } from '#ports/timers.ts'

export interface DailySalts {
  /**
   * The salt of an open day, 16 bytes: at once when it is known.
   * @param day `2026-11-28`; has to be open (`isDayOpen`).
   * @throws (rejects with) PortError when the store is away.
   */
  saltOf(day: string): Uint8Array | Promise<Uint8Array>
  close(): void
}

const forgetEveryMs = 60_000
/** While the store is away, one request a second waits for it. */
const restMs = 1_000

export function createDailySalts(options: {
  readonly store: Pick<CookielessSalts, 'keepSalt'>
  readonly clock: Clock
  readonly timers: Pick<Timers, 'startTimer'>
  readonly monotonicNowMs: () => number
  readonly randomBytes: (count: number) => Uint8Array
}): DailySalts {
  const { store, clock, timers, monotonicNowMs, randomBytes } = options
  const known = new Map<string, Uint8Array>()
  const asked = new Map<string, Promise<Uint8Array>>()
  let failure: { readonly cause: unknown; readonly untilMs: number } | null = null
  const timer = timers.startTimer(() => {
    for (const day of known.keys()) if (closesAtMs(day) <= clock.nowMs()) known.delete(day)
  }, forgetEveryMs)

  async function read(day: string): Promise<Uint8Array> {
    try {
      const salt = await store.keepSalt(day, randomBytes(16))
      failure = null
      known.set(day, salt)
      return salt
    } catch (cause) {
      failure = { cause, untilMs: monotonicNowMs() + restMs }
      throw cause
    } finally {
      asked.delete(day)
    }
  }

  return {
    saltOf(day) {
      const salt = known.get(day) ?? asked.get(day)
      if (salt !== undefined) return salt
      if (failure !== null && monotonicNowMs() < failure.untilMs) return Promise.reject(failure.cause)
      const reading = read(day)
      asked.set(day, reading)
      return reading
    },
    close: () => timer.cancel(),
  }
}
