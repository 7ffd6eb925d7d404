// Limits how much one project has waiting between the log and the worker, for live events or for imports. The worker
// takes records in the order of the log, so one project that sends without end would delay the events of all others.
// Above the limit, only that project is asked to retry later. While a store is unavailable, no project is refused:
// everything waits in the log.

import type { Traffic } from '#core/events/log-stream.ts'
import { findProcessedUntilMs, type ProcessedUntil } from '#core/events/processed-until.ts'
import type { EncodedRecords } from '#core/log/record-codec.ts'
import type { Clock } from '#ports/clock.ts'

export type ProjectBacklog = ReturnType<typeof createProjectBacklog>

export interface ProjectBacklogOptions {
  /** How far the worker has processed, as it last reported; null before its first report. */
  readonly processedUntil: () => ProcessedUntil | null
  /** Whether the worker makes progress: false while it starts or waits for a store. */
  readonly isProcessing: () => boolean
  /** Whether another project could be delayed. */
  readonly hasOtherProjects: () => boolean
  readonly clock: Clock
  /** How much one project may have waiting, in records; each 2 KiB count as one more. */
  readonly unitsMax: number
  /** Whether the projects that have something waiting share `unitsMax`, instead of each having that much. */
  readonly isShared?: boolean
}

/**
 * For live events, two seconds of a worker's work on one core. Imports may be late, so for them it is twenty: enough that
 * one importer keeps the worker busy until its next request, and too little to fill the log at other importers' expense.
 * Projects that import at the same time share the limit: their number does not lengthen the backlog, and each gets an equal
 * part. Source: ours; docs/decisions/0030-one-project-has-so-much-waiting.md.
 */
export const projectBacklogUnitsMax = { live: 30_000, import: 300_000 } as const satisfies Record<Traffic, number>

/** The reason in metrics for records refused by this limit. */
export const backlogReason = 'project_backlog_full'

const unitBytes = 2_048
/** How old the count of what all projects have waiting may be. */
const countedMs = 100
/** Records stored within this time share one entry. */
const entryMs = 50
/** Once a project has this many entries, further records join the newest entry, and are therefore forgotten later. */
const entryCountMax = 256

interface Entry {
  units: number
  readonly sinceMs: number
  untilMs: number
}

interface Waiting {
  /** Oldest first. */
  readonly entries: Entry[]
  /** Units of all entries, and of records that are taken but not yet settled. */
  units: number
}

export function createProjectBacklog(options: ProjectBacklogOptions) {
  const { clock, unitsMax } = options
  const waitingOf = new Map<number, Waiting>()
  let counted = { atMs: Number.NEGATIVE_INFINITY, projects: 0, units: 0 }

  return {
    /**
     * Takes records that are about to be appended. While nothing of the project is waiting, any request is accepted.
     * @returns the units that the records count for, to be settled later; null when the project has too many waiting.
     */
    take(projectId: number, { recordCount, bytes }: EncodedRecords): number | null {
      const units = recordCount + Math.floor(bytes.length / unitBytes)
      const waiting = waitingOf.get(projectId) ?? { entries: [], units: 0 }
      waitingOf.set(projectId, waiting)
      forgetProcessed(projectId, waiting)
      const share = options.isShared === true ? unitsMax / Math.max(1, countWaiting().projects) : unitsMax
      const isTooMuch = waiting.units > 0 && waiting.units + units > share
      if (isTooMuch && options.isProcessing() && options.hasOtherProjects()) return null
      waiting.units += units
      return units
    },
    settle(projectId: number, units: number, isStored: boolean): void {
      const waiting = waitingOf.get(projectId)!
      if (isStored) addUnits(waiting, units)
      else waiting.units -= units
    },
    /** Whether other projects have records waiting, and this project has clearly less than its share of the total. */
    isBelowShare(projectId: number): boolean {
      const { projects, units } = countWaiting()
      return projects > 1 && (waitingOf.get(projectId)?.units ?? 0) * projects < units * 0.9
    },
  }

  /**
   * Returns what all projects have waiting, at most `countedMs` old. Projects that have nothing waiting are removed.
   */
  function countWaiting(): { readonly projects: number; readonly units: number } {
    const nowMs = clock.nowMs()
    if (Math.abs(nowMs - counted.atMs) < countedMs) return counted
    counted = { atMs: nowMs, projects: 0, units: 0 }
    for (const [projectId, waiting] of waitingOf) {
      forgetProcessed(projectId, waiting)
      counted.units += waiting.units
      if (waiting.units > 0) counted.projects++
    }
    return counted
  }

  function addUnits({ entries }: Waiting, units: number): void {
    const nowMs = clock.nowMs()
    const latest = entries.at(-1)
    if (latest !== undefined && (nowMs - latest.sinceMs < entryMs || entries.length >= entryCountMax)) {
      latest.units += units
      latest.untilMs = nowMs
    } else entries.push({ units, sinceMs: nowMs, untilMs: nowMs })
  }

  function forgetProcessed(projectId: number, waiting: Waiting): void {
    const { entries } = waiting
    if (entries.length === 0) return
    const until = options.processedUntil()
    const untilMs = until === null ? null : findProcessedUntilMs(until, projectId)
    // Before the worker's first report, or after the clock was set back, the time of processing is unknown: clear all
    // entries.
    const knowsNothing = untilMs === null || entries.at(-1)!.untilMs > clock.nowMs()
    while (entries.length > 0 && (knowsNothing || entries[0]!.untilMs < untilMs))
      waiting.units -= entries.shift()!.units
  }
}
