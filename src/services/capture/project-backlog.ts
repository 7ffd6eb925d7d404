// How much one project has waiting in a lane between the log and the worker. The worker takes records in the order of the log, so one
// project that sends without end would keep the events of all others waiting. Beyond a bound, that project alone is asked to
// come back later. While a store is away everything waits, whoever sent it: then nothing is refused, and the log holds it.

import type { LogLane } from '#core/events/captured-event.ts'
import type { EncodedRecords } from '#core/log/record-codec.ts'
import type { Clock } from '#ports/clock.ts'

export interface ProjectBacklog {
  /**
   * Takes what is about to be appended to the lane. A request that finds nothing of its project waiting is always taken.
   * @returns what it counts for, to be settled later; null when the project has too much waiting.
   */
  take(projectId: number, records: EncodedRecords): number | null
  settle(projectId: number, units: number, isStored: boolean): void
}

export interface ProjectBacklogOptions {
  /** The worker's word that everything appended before this time (epoch ms) is processed; null before its first. */
  readonly processedUntilMs: () => number | null
  /** Whether the worker goes on: not, while it waits for a store or starts. */
  readonly isProcessing: () => boolean
  /** Whether anybody else could be kept waiting. */
  readonly hasOtherProjects: () => boolean
  readonly clock: Clock
  /** Bounds what one project has waiting, in records; each 2 KiB count as one more. */
  readonly unitsMax: number
}

/**
 * Live events may wait for two seconds of a worker's work on one core. Imports may be late, so theirs is twenty: enough that one
 * importer keeps the worker busy while it waits to come again, and too little to take the log from other importers.
 * Source: ours; docs/decisions/0030-one-project-has-so-much-waiting.md.
 */
export const projectBacklogUnitsMax = { main: 30_000, historical: 300_000 } as const satisfies Record<LogLane, number>

/** The reason in metrics for what is refused because of it. */
export const backlogReason = 'project_backlog_full'

const unitBytes = 2_048
/** What is stored within so long is one entry. */
const entryMs = 50
/** Beyond so many entries of a project, what is added counts as the newest: it is let go of later than it might be. */
const entryCountMax = 256

interface Entry {
  units: number
  readonly sinceMs: number
  untilMs: number
}

interface Waiting {
  /** Oldest first. */
  readonly entries: Entry[]
  /** Units of all entries, and of what was taken and is not settled yet. */
  units: number
}

export function createProjectBacklog(options: ProjectBacklogOptions): ProjectBacklog {
  const { clock, unitsMax } = options
  const waitingOf = new Map<number, Waiting>()

  return {
    take(projectId, { recordCount, bytes }) {
      const units = recordCount + Math.floor(bytes.length / unitBytes)
      const waiting = waitingOf.get(projectId) ?? { entries: [], units: 0 }
      waitingOf.set(projectId, waiting)
      forgetProcessed(waiting)
      const isTooMuch = waiting.units > 0 && waiting.units + units > unitsMax
      if (isTooMuch && options.isProcessing() && options.hasOtherProjects()) return null
      waiting.units += units
      return units
    },
    settle(projectId, units, isStored) {
      const waiting = waitingOf.get(projectId)!
      if (isStored) note(waiting, units)
      else waiting.units -= units
    },
  }

  function note({ entries }: Waiting, units: number): void {
    const nowMs = clock.nowMs()
    const latest = entries.at(-1)
    if (latest !== undefined && (nowMs - latest.sinceMs < entryMs || entries.length >= entryCountMax)) {
      latest.units += units
      latest.untilMs = nowMs
    } else entries.push({ units, sinceMs: nowMs, untilMs: nowMs })
  }

  function forgetProcessed(waiting: Waiting): void {
    const { entries } = waiting
    if (entries.length === 0) return
    const processedUntilMs = options.processedUntilMs()
    // Before the worker has said anything, and after a clock was set back, there is no telling when to forget.
    const knowsNothing = processedUntilMs === null || entries.at(-1)!.untilMs > clock.nowMs()
    while (entries.length > 0 && (knowsNothing || entries[0]!.untilMs < processedUntilMs))
      waiting.units -= entries.shift()!.units
  }
}
