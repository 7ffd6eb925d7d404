// Keeps the log small: deletes whole segments that lie behind the committed position, once they are older than the retention,
// or at any age while room is short, and packs what is complete. What is not processed yet is never deleted, however old;
// the log itself decides where segments end.

import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import type { Logger } from '#telemetry/log.ts'
import { runPeriodically } from '../shared/run-periodically.ts'

const everyMs = 60_000
/** Room is left for what comes between two looks; writers look as often. */
const roomEveryMs = 1_000
const packEveryMs = 5_000

export interface LogRetention {
  run(signal: AbortSignal): Promise<void>
  /** One round. @returns how many segments went for their age. @throws PortError */
  deleteNow(): Promise<number>
  /** Where room is short. @returns how many processed segments went, whatever their age. @throws PortError */
  makeRoomNow(): Promise<number>
}

export function createLogRetention(options: {
  readonly log: Pick<EventLogReader, 'deleteBehind' | 'room' | 'makeRoom' | 'pack'>
  /** Answers the durable position, not what the worker holds in memory. */
  readonly positions: Pick<ManagementStore, 'findLogPosition'>
  readonly clock: Clock
  readonly logger: Logger
  readonly retentionMs: number
  readonly lanes?: readonly LogLane[]
  /** While true nothing is deleted for its age, because it may still be needed. Never true when absent. */
  readonly isHeld?: () => boolean
}): LogRetention {
  const { log, positions, clock, logger, retentionMs } = options

  async function deleteNow(): Promise<number> {
    let count = 0
    for (const lane of options.lanes ?? logLanes) {
      const { offset } = await positions.findLogPosition(lane)
      count += (await log.deleteBehind(lane, offset, clock.nowMs() - retentionMs)).deletedSegmentCount
    }
    if (count > 0) logger.info({ segmentCount: count }, 'processed log segments deleted')
    return count
  }

  async function makeRoomNow(): Promise<number> {
    const { isShort, areImportsShort } = await log.room()
    if (!isShort && !areImportsShort) return 0
    const processed = { main: 0, historical: 0 }
    for (const lane of logLanes) processed[lane] = (await positions.findLogPosition(lane)).offset
    const { deletedSegmentCount } = await log.makeRoom(processed)
    if (deletedSegmentCount > 0)
      logger.info({ segmentCount: deletedSegmentCount }, 'processed log segments deleted before their time, for room')
    return deletedSegmentCount
  }

  return {
    deleteNow,
    makeRoomNow,
    run: async signal => {
      const repeat = (everyMs: number, what: string, task: () => Promise<unknown>) =>
        runPeriodically(async () => void (await task()), { everyMs, what, logger, signal })
      await Promise.all([
        repeat(everyMs, 'log retention', async () => {
          if (options.isHeld?.() !== true) await deleteNow()
        }),
        repeat(roomEveryMs, 'making room in the log', makeRoomNow),
        repeat(packEveryMs, 'packing the log', () => log.pack(signal)),
      ])
    },
  }
}
