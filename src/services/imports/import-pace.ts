// How fast importers may send: as fast as the worker follows. The rate grows while imports are processed soon after
// they arrive and shrinks while they wait; when they wait for long, importers are asked to pause. Live events have a
// stream of their own and never wait for an import. A project that has less than its share of what waits neither slows down
// nor pauses for what others send. Source: docs/wire/import.md §2.5, §3.1.

import type { ProcessedUntil } from '#core/events/processed-until.ts'
import type { Clock } from '#ports/clock.ts'

export interface ImportPace {
  /** Events per second that the importers of a project together may send. */
  rate(projectId: number): number
  /** How long an importer has to pause, in seconds; null when it may send. */
  pauseSeconds(projectId: number): number | null
  /** Call after imports were stored in the log: only these can wait for the worker. */
  noteStored(): void
}

const rateMin = 500
const rateMax = 100_000
const rateFirst = 20_000
const everyMs = 1_000
/** What was let in before a rate shrank still waits; shrinking again at once would always end at the least rate. */
const shrinkEveryMs = 5_000
const growthPerSecond = 1.1
/** Importers ask once per batch, which at a low rate is once in ten seconds: the growth of that time is due then. */
const growthMax = 2
const shrinkage = 0.7
const soonMs = 3_000
const lateMs = 10_000
/** Some 300,000 events at the usual pace of a worker, which is what a project may have waiting. */
const pauseFromMs = 30_000
const pauseSecondsMax = 30
/** After so long without anything new, whatever was taken for waiting was not there, or its worker is not. */
const forgetAfterMs = 300_000
/** Projects that import at once are few; one that is forgotten begins anew. */
const projectCountMax = 1_000

interface Pace {
  /** Events. */
  ratePerSecond: number
  adaptedAtMs: number
  shrunkAtMs: number
}

export function createImportPace(options: {
  /** How far the worker has processed imports, as it last reported; null before its first report. */
  readonly processedUntil: () => ProcessedUntil | null
  /** Whether a project has less waiting than its share, beside others. */
  readonly isBelowShare: (projectId: number) => boolean
  readonly clock: Clock
}): ImportPace {
  const { processedUntil, isBelowShare, clock } = options
  const paces = new Map<number, Pace>()

  /** When the latest import was stored, and when the first since everything had been processed; null before any. */
  let stored: { lastMs: number; firstMs: number } | null = null

  /** The worker stops reporting once nothing waits, so an old report is no lag. */
  function lagMs(): number {
    const until = processedUntil()
    if (stored !== null && clock.nowMs() - stored.lastMs > forgetAfterMs) stored = null
    if (until === null || stored === null || stored.lastMs <= until.appendedBeforeMs) return 0
    return Math.max(0, clock.nowMs() - Math.max(until.appendedBeforeMs, stored.firstMs))
  }

  /**
   * How long the worker has to work on what waits, at the pace at which that came. The age of the oldest of it would keep
   * importers away until all of it is done: it falls only when the worker is faster than they were.
   */
  function waitingMs(): number {
    const lag = lagMs()
    const until = processedUntil()
    // A worker that has done nothing since has no pace.
    if (lag === 0 || until === null || until.appendedBeforeMs <= stored!.firstMs) return lag
    return stored!.lastMs - until.appendedBeforeMs
  }

  function grow(pace: Pace, elapsedMs: number): void {
    const factor = Math.min(growthMax, growthPerSecond ** (elapsedMs / 1_000))
    pace.ratePerSecond = Math.min(rateMax, pace.ratePerSecond * factor)
  }

  function paceOf(projectId: number): Pace {
    let pace = paces.get(projectId)
    if (pace === undefined) {
      if (paces.size >= projectCountMax) paces.clear()
      pace = { ratePerSecond: rateFirst, adaptedAtMs: clock.nowMs(), shrunkAtMs: Number.NEGATIVE_INFINITY }
      paces.set(projectId, pace)
    }
    return pace
  }

  return {
    rate: projectId => {
      const nowMs = clock.nowMs()
      const pace = paceOf(projectId)
      const elapsedMs = Math.abs(nowMs - pace.adaptedAtMs)
      if (elapsedMs < everyMs) return Math.round(pace.ratePerSecond)
      pace.adaptedAtMs = nowMs
      const lag = lagMs()
      if (lag < soonMs) grow(pace, elapsedMs)
      else if (lag > lateMs && !isBelowShare(projectId) && Math.abs(nowMs - pace.shrunkAtMs) >= shrinkEveryMs) {
        pace.shrunkAtMs = nowMs
        pace.ratePerSecond = Math.max(rateMin, pace.ratePerSecond * shrinkage)
      }
      return Math.round(pace.ratePerSecond)
    },
    pauseSeconds: projectId => {
      const waiting = waitingMs()
      if (waiting >= pauseFromMs && !isBelowShare(projectId))
        return Math.min(pauseSecondsMax, Math.ceil((waiting - pauseFromMs / 2) / 1_000))
      return null
    },
    noteStored: () => {
      const nowMs = clock.nowMs()
      const isIdle = stored === null || stored.lastMs <= (processedUntil()?.appendedBeforeMs ?? 0)
      stored = { lastMs: nowMs, firstMs: isIdle ? nowMs : stored!.firstMs }
    },
  }
}
