// Determines how fast importers may send: as fast as the worker can process. The rate grows while imports are processed
// soon after they arrive and shrinks while they wait; after a long wait, importers are asked to pause. Live events have a
// separate stream and never wait for an import. A project with less than its share of the waiting events is neither slowed
// nor paused because of other projects. Source: docs/wire/import.md §2.5, §3.1.

import type { ProcessedUntil } from '#core/events/processed-until.ts'
import type { Clock } from '#ports/clock.ts'

export type ImportPace = ReturnType<typeof createImportRateLimiter>

const rateMin = 500
const rateMax = 100_000
const rateFirst = 20_000
const everyMs = 1_000
/** Events accepted before the rate shrank still wait: shrinking again immediately would always end at the minimum. */
const shrinkEveryMs = 5_000
const growthPerSecond = 1.1
/** Limits the growth per request: at a low rate, importers ask every ten seconds and get the growth of that time. */
const growthMax = 2
const shrinkage = 0.7
const soonMs = 3_000
const lateMs = 10_000
/** About 300,000 events at a worker's usual pace: as many as a project may have waiting. */
const pauseFromMs = 30_000
const pauseSecondsMax = 30
/** Forgets imports after this long without new ones: nothing is waiting then, or no worker is running. */
const forgetAfterMs = 300_000
/** Few projects import at once; a forgotten project starts again at the first rate. */
const projectCountMax = 1_000

interface Pace {
  /** Events. */
  ratePerSecond: number
  adaptedAtMs: number
  shrunkAtMs: number
}

export function createImportRateLimiter(options: {
  /** How far the worker has processed imports, as it last reported; null before its first report. */
  readonly processedUntil: () => ProcessedUntil | null
  /** Whether a project has less than its share of the waiting events. */
  readonly isBelowShare: (projectId: number) => boolean
  readonly clock: Clock
}) {
  const { processedUntil, isBelowShare, clock } = options
  const paces = new Map<number, Pace>()

  /** When the latest import was stored, and the first since nothing was waiting; null before the first import. */
  let stored: { lastMs: number; firstMs: number } | null = null

  /** Returns how far the worker lags. The worker stops reporting once nothing waits, so an old report means no lag. */
  function computeLagMs(): number {
    const until = processedUntil()
    if (stored !== null && clock.nowMs() - stored.lastMs > forgetAfterMs) stored = null
    if (until === null || stored === null || stored.lastMs <= until.appendedBeforeMs) return 0
    return Math.max(0, clock.nowMs() - Math.max(until.appendedBeforeMs, stored.firstMs))
  }

  /**
   * The span of time in which the waiting imports arrived: how long the worker needs for them at the pace at which they
   * arrived. The age of the oldest waiting import would pause importers until nothing waits, since this age falls only
   * while the worker is faster than the importers were.
   */
  function computeWaitingMs(): number {
    const lag = computeLagMs()
    const until = processedUntil()
    // A worker that has processed none of these imports has no pace yet.
    if (lag === 0 || until === null || until.appendedBeforeMs <= stored!.firstMs) return lag
    return stored!.lastMs - until.appendedBeforeMs
  }

  function grow(pace: Pace, elapsedMs: number): void {
    const factor = Math.min(growthMax, growthPerSecond ** (elapsedMs / 1_000))
    pace.ratePerSecond = Math.min(rateMax, pace.ratePerSecond * factor)
  }

  function getOrCreatePace(projectId: number): Pace {
    let pace = paces.get(projectId)
    if (pace === undefined) {
      if (paces.size >= projectCountMax) paces.clear()
      pace = { ratePerSecond: rateFirst, adaptedAtMs: clock.nowMs(), shrunkAtMs: Number.NEGATIVE_INFINITY }
      paces.set(projectId, pace)
    }
    return pace
  }

  return {
    /** Events per second that all importers of a project together may send. */
    rate(projectId: number): number {
      const nowMs = clock.nowMs()
      const pace = getOrCreatePace(projectId)
      const elapsedMs = Math.abs(nowMs - pace.adaptedAtMs)
      if (elapsedMs < everyMs) return Math.round(pace.ratePerSecond)
      pace.adaptedAtMs = nowMs
      const lag = computeLagMs()
      if (lag < soonMs) grow(pace, elapsedMs)
      else if (lag > lateMs && !isBelowShare(projectId) && Math.abs(nowMs - pace.shrunkAtMs) >= shrinkEveryMs) {
        pace.shrunkAtMs = nowMs
        pace.ratePerSecond = Math.max(rateMin, pace.ratePerSecond * shrinkage)
      }
      return Math.round(pace.ratePerSecond)
    },
    /** How long an importer must pause, in seconds; null if it may send. */
    pauseSeconds(projectId: number): number | null {
      const waiting = computeWaitingMs()
      if (waiting >= pauseFromMs && !isBelowShare(projectId))
        return Math.min(pauseSecondsMax, Math.ceil((waiting - pauseFromMs / 2) / 1_000))
      return null
    },
    /** Call after imports were stored in the log: only these can wait for the worker. */
    noteStored(): void {
      const nowMs = clock.nowMs()
      const isIdle = stored === null || stored.lastMs <= (processedUntil()?.appendedBeforeMs ?? 0)
      stored = { lastMs: nowMs, firstMs: isIdle ? nowMs : stored!.firstMs }
    },
  }
}
