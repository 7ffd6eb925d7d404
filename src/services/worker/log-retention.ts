// Keeps the log small: deletes whole segments before the committed position once they are older than the retention, or at any
// age while space is short, and packs complete segments. Unprocessed records are never deleted, however old. The log itself
// decides where segments end.

import type { LogStream } from '#core/events/log-stream.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader, EventLogRetention } from '#ports/log/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import { findAllProgress, type ProgressStore } from '../progress/find-progress.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

const everyMs = 60_000
/** The log's limits leave space for records that arrive between two checks; writers check equally often. */
const reclaimEveryMs = 1_000
const packEveryMs = 5_000

export function createLogCleanup(options: {
  readonly log: Pick<EventLogReader, 'listStreams'> & EventLogRetention
  /** Reads the durable positions, not the worker's positions in memory. */
  readonly positions: ProgressStore
  /** The retention clock (`retention-clock.ts`). */
  readonly clock: Clock
  readonly logger: Logger
  readonly retentionMs: number
  /**
   * Whether this worker holds the schedule lease, so that it runs the schedules: only one worker deletes by age and
   * packs.
   */
  readonly mayRun?: () => Promise<boolean>
  /** While true, nothing is deleted by age, because the records may still be needed. Default: never true. */
  readonly isHeld?: () => boolean
}) {
  const { log, positions, clock, logger, retentionMs, mayRun } = options

  async function readProcessedOffsets(): Promise<Record<LogStream, number>> {
    const progress = await findAllProgress(positions, log)
    return Object.fromEntries(Array.from(progress, ([stream, { doneOffset }]) => [stream, doneOffset]))
  }

  /** Runs one round. @returns how many segments were deleted because of their age. @throws PortError */
  async function deleteNow(): Promise<number> {
    let count = 0
    for (const [stream, offset] of Object.entries(await readProcessedOffsets())) {
      count += (await log.deleteBefore(stream, offset, clock.nowMs() - retentionMs)).deletedSegmentCount
    }
    if (count > 0) logger.info({ segmentCount: count }, 'deleted processed log segments')
    return count
  }

  /** Deletes processed segments of any age if space is short. @returns how many were deleted. @throws PortError */
  async function reclaimSpaceNow(): Promise<number> {
    const { isShort, areImportsShort } = await log.measureSpace()
    if (!isShort && !areImportsShort) return 0
    const { deletedSegmentCount } = await log.reclaimSpace(await readProcessedOffsets())
    if (deletedSegmentCount > 0)
      logger.info(
        { segmentCount: deletedSegmentCount },
        'deleted processed log segments early: the log was short of space',
      )
    return deletedSegmentCount
  }

  return {
    deleteNow,
    reclaimSpaceNow,
    run: async (signal: AbortSignal) => {
      const repeat = (everyMs: number, what: string, may: typeof mayRun, task: () => Promise<unknown>) =>
        runPeriodically(async () => void (await task()), { everyMs, what, logger, signal, mayRun: may })
      await Promise.all([
        repeat(everyMs, 'log retention', mayRun, async () => {
          if (options.isHeld?.() !== true) await deleteNow()
        }),
        // Runs without the lease, which cannot be written on a full disk. Two workers on one disk do no harm: they would
        // delete the same files.
        repeat(reclaimEveryMs, 'reclaiming log space', undefined, reclaimSpaceNow),
        repeat(packEveryMs, 'compressing the log', mayRun, () => log.compressSegments(signal)),
      ])
    },
  }
}
