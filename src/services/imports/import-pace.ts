// How fast importers may send: as fast as the worker follows. The rate grows while imports are processed soon after
// they arrive and shrinks while they wait; when they wait for long, importers are asked to pause. Live events have a
// stream of their own and never wait for an import. Source: docs/wire/import.md §2.5, §3.1.

import type { ProcessedUntil } from '#core/events/processed-until.ts'
import type { Clock } from '#ports/clock.ts'

export interface ImportPace {
  /** Events per second that all importers together may send. */
  rate(): number
  /** How long an importer has to pause, in seconds; null when it may send, which is taken to happen. */
  pauseSeconds(): number | null
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

export function createImportPace(options: {
  /** How far the worker has processed imports, as it last reported; null before its first report. */
  readonly processedUntil: () => ProcessedUntil | null
  readonly clock: Clock
}): ImportPace {
  const { processedUntil, clock } = options
  let ratePerSecond = rateFirst
  let adaptedAtMs = clock.nowMs()
  let shrunkAtMs = Number.NEGATIVE_INFINITY

  /** When the latest import was let in, and when the first since everything had been processed; null before any. */
  let letIn: { lastMs: number; firstMs: number } | null = null

  /** The worker stops reporting once nothing waits, so an old report is no lag. */
  function lagMs(): number {
    const until = processedUntil()
    if (until === null || letIn === null || letIn.lastMs <= until.appendedBeforeMs) return 0
    return Math.max(0, clock.nowMs() - Math.max(until.appendedBeforeMs, letIn.firstMs))
  }

  function noteLetIn(): void {
    const nowMs = clock.nowMs()
    const isIdle = letIn === null || letIn.lastMs <= (processedUntil()?.appendedBeforeMs ?? 0)
    letIn = { lastMs: nowMs, firstMs: isIdle ? nowMs : letIn!.firstMs }
  }

  function grow(elapsedMs: number): void {
    const factor = Math.min(growthMax, growthPerSecond ** (elapsedMs / 1_000))
    ratePerSecond = Math.min(rateMax, ratePerSecond * factor)
  }

  return {
    rate: () => {
      const nowMs = clock.nowMs()
      const elapsedMs = Math.abs(nowMs - adaptedAtMs)
      if (elapsedMs < everyMs) return Math.round(ratePerSecond)
      adaptedAtMs = nowMs
      const lag = lagMs()
      if (lag < soonMs) grow(elapsedMs)
      else if (lag > lateMs && Math.abs(nowMs - shrunkAtMs) >= shrinkEveryMs) {
        shrunkAtMs = nowMs
        ratePerSecond = Math.max(rateMin, ratePerSecond * shrinkage)
      }
      return Math.round(ratePerSecond)
    },
    pauseSeconds: () => {
      const lag = lagMs()
      if (lag >= pauseFromMs) return Math.min(pauseSecondsMax, Math.ceil((lag - pauseFromMs / 2) / 1_000))
      noteLetIn()
      return null
    },
  }
}
