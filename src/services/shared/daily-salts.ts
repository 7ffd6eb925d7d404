// Remembers the salts of the days that are open, and forgets each when its day closes. Twice a minute it offers the store
// what it remembers: this restores a salt that a worker with a wrong clock deleted, and processes that had different salts
// agree on the stored one. Source: docs/wire/ingestion.md 13.

import { findDaysToKeep, isDayInRange } from '#core/cookieless/visitor-day.ts'
import type { Clock, Timers } from '#ports/clock.ts'
import type { CookielessSalts } from '#ports/state/cookieless-visitors.ts'

export type DailySalts = ReturnType<typeof createDailySaltCache>

/** Less than the minute between two deletions by a worker, so that the next deletion notices that a salt was restored. */
const lookEveryMs = 30_000
/** While the store is unavailable, one request per second and day waits for it. */
const restMs = 1_000

export function createDailySaltCache(options: {
  readonly store: Pick<CookielessSalts, 'findOrCreateSalt'>
  readonly clock: Clock
  readonly timers: Pick<Timers, 'startTimer'>
  readonly monotonicNowMs: () => number
  readonly randomBytes: (count: number) => Uint8Array
}) {
  const { store, clock, timers, monotonicNowMs, randomBytes } = options
  const known = new Map<string, Uint8Array>()
  const asked = new Map<string, Promise<Uint8Array>>()
  const failures = new Map<string, { readonly cause: unknown; readonly untilMs: number }>()
  const timer = timers.startTimer(() => {
    const kept = findDaysToKeep(clock.nowMs())
    for (const days of [known, failures]) for (const day of days.keys()) if (!isDayInRange(kept, day)) days.delete(day)
    for (const [day, salt] of known) void agreeOnSalt(day, salt)
  }, lookEveryMs)

  /**
   * An unavailable store is reported by requests for other days, not here. Each round replaces the salt's array even when
   * the store is unavailable: `services/capture/anonymize-visitors.ts` releases the visitors of a salt together with its
   * array.
   */
  async function agreeOnSalt(day: string, salt: Uint8Array): Promise<void> {
    const stored = await store.findOrCreateSalt(day, salt).catch(() => salt.slice())
    if (known.has(day)) known.set(day, stored)
  }

  async function readOrCreateSalt(day: string): Promise<Uint8Array> {
    try {
      const salt = await store.findOrCreateSalt(day, randomBytes(16))
      failures.delete(day)
      known.set(day, salt)
      return salt
    } catch (cause) {
      failures.set(day, { cause, untilMs: monotonicNowMs() + restMs })
      throw cause
    } finally {
      asked.delete(day)
    }
  }

  return {
    /** The salt of an open day if it is known without the store. */
    knownSalt: (day: string) => known.get(day) ?? null,
    /**
     * The salt of an open day, 16 bytes: at once when it is known.
     * @param day `2026-11-28`; must be open (`isDayOpen`).
     * @throws (rejects with) PortError when the store is unavailable.
     */
    saltOf(day: string): Uint8Array | Promise<Uint8Array> {
      const salt = known.get(day) ?? asked.get(day)
      if (salt !== undefined) return salt
      const failure = failures.get(day)
      if (failure !== undefined && monotonicNowMs() < failure.untilMs) return Promise.reject(failure.cause)
      const reading = readOrCreateSalt(day)
      asked.set(day, reading)
      return reading
    },
    close: () => timer.cancel(),
  }
}
