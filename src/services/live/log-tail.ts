// Follows the end of one lane of the log while somebody watches: reads what was appended since, when it is woken or by looking
// now and then, and hands on the records that are wanted. Others are skipped undecoded. It shares its event loop with
// requests, so it works in short slices and rests three times as long as it worked.

import type { DecodedRecord, LogLane } from '#core/events/captured-event.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { EventLogReader, LogRun } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'

export interface LogTailOptions {
  readonly log: Pick<EventLogReader, 'readRuns' | 'status'>
  readonly lane: LogLane
  /** Reading begins here. */
  readonly fromOffset: number
  /** @param kind of a record, as `record-layout.ts` has them. */
  readonly isWanted: (projectId: number, kind: number) => boolean
  /** A record that is wanted, by what its header says: what is damaged may be anybody's. */
  readonly take: (record: DecodedRecord, offset: number) => void
  /** After each slice, before the event loop gets its turn. */
  readonly rest: () => void
  /** Reading goes on at the end; what lay in between is not known: it came faster than it can be read, or cannot be read. */
  readonly onLost: (reason: 'behind' | 'unreadable') => void
  /** It ended by a mistake of ours. */
  readonly onFailed: () => void
  readonly nowMs: () => number
  readonly monotonicNowMs: () => number
  /** What this thread has worked so far, ms of a processor: other processes on the machine take nothing from its share. */
  readonly workedMs: () => number
  /** Once, unless it is cancelled. */
  readonly startTimeout: (callback: () => void, afterMs: number) => { cancel(): void }
  readonly logger: Logger
}

export interface LogTail {
  /** Offset of the record that is taken next. */
  readonly position: number
  /** Something was appended. Cheap and repeatable. */
  wake(): void
  stop(): void
  /** Resolves when nothing is read any more. */
  readonly ended: Promise<void>
}

/** How often it looks without being woken: the commits of other fronts wake nobody here. */
const pollMs = 200
/** The least pause between two reads of a quiet lane, so that several commits are read at once. */
const restMsMin = 20
/** Rests three times as long as it worked, so that it takes at most a quarter of the thread's time. */
const restFactor = 3
const sliceMsMax = 4
/** Records between two looks at the clock. */
const recordsPerLook = 16
const bytesPerRead = 512 * 1024
/** Whoever cannot keep up is shown what happens now instead of ever older events. */
const behindMsMax = 5_000
const failureRestMs = 1_000
const complaintPauseMs = 10_000

export function startLogTail(options: LogTailOptions): LogTail {
  const { log, lane, monotonicNowMs, logger } = options
  let position = options.fromOffset
  let isStopped = false
  let isWoken = false
  let endRest: (() => void) | null = null
  /** Since when every read brought as much as it may. */
  let fullSinceMs: number | null = null
  let complainedAtMs = Number.NEGATIVE_INFINITY
  const ended = follow().catch(error => {
    logger.error({ err: error, lane }, 'the live view of the log failed')
    options.onFailed()
  })

  return {
    get position() {
      return position
    },
    wake() {
      isWoken = true
      endRest?.()
    },
    stop() {
      isStopped = true
      endRest?.()
    },
    ended,
  }

  async function follow(): Promise<void> {
    while (!isStopped) {
      const readAtMs = monotonicNowMs()
      const workedBeforeMs = options.workedMs()
      isWoken = false
      const runs = await readOn()
      if (runs === null) await rest(failureRestMs, false)
      else if (runs.length === 0) await rest(pollMs, true)
      else {
        const isFull = runs.reduce((bytes, run) => bytes + run.bytes.length, 0) >= bytesPerRead
        const sliceMs = await takeAll(runs, workedBeforeMs)
        await rest(isFull ? sliceMs * restFactor : Math.max(sliceMs * restFactor, restMsMin), false)
        fullSinceMs = isFull ? (fullSinceMs ?? readAtMs) : null
        if (isTooLate(runs.at(-1)!)) await goToEnd('behind')
      }
    }
  }

  /** Reads the next runs. @returns null when the log cannot be read now. */
  async function readOn(): Promise<readonly LogRun[] | null> {
    try {
      const { runs, firstOffset } = await log.readRuns(lane, position, bytesPerRead)
      position = Math.max(position, firstOffset)
      return runs
    } catch (error) {
      if (!(error instanceof PortError)) throw error
      complain(error)
      // A log that came back from an older copy ends before the position.
      if (!error.retryable) await goToEnd('unreadable')
      return null
    }
  }

  /** @returns how long it worked in its last slice, ms. */
  async function takeAll(runs: readonly LogRun[], workedBeforeMs: number): Promise<number> {
    let sliceBeganMs = workedBeforeMs
    let untilLook = recordsPerLook
    for (const run of runs) {
      const cursor = new RecordCursor(run.bytes, run.recordCount)
      position = Math.max(position, run.firstOffset)
      cursor.skip(position - run.firstOffset)
      while (!cursor.done) {
        const offset = position++
        if (options.isWanted(cursor.nextProjectId, cursor.nextKind)) options.take(cursor.next(), offset)
        else cursor.skip(1)
        if (--untilLook > 0) continue
        untilLook = recordsPerLook
        if (options.workedMs() - sliceBeganMs < sliceMsMax) continue
        options.rest()
        await rest((options.workedMs() - sliceBeganMs) * restFactor, false)
        if (isStopped) return 0
        sliceBeganMs = options.workedMs()
      }
    }
    options.rest()
    return options.workedMs() - sliceBeganMs
  }

  function isTooLate(last: LogRun): boolean {
    if (fullSinceMs === null || monotonicNowMs() - fullSinceMs < behindMsMax) return false
    return options.nowMs() - last.appendedAtMs > behindMsMax
  }

  async function goToEnd(reason: 'behind' | 'unreadable'): Promise<void> {
    try {
      const { endOffset } = await log.status(lane, position)
      if (isStopped) return
      position = endOffset
      fullSinceMs = null
      options.onLost(reason)
    } catch (error) {
      if (!(error instanceof PortError)) throw error
      complain(error)
    }
  }

  function rest(ms: number, endsWhenWoken: boolean): Promise<void> {
    if (isStopped || (endsWhenWoken && isWoken)) return Promise.resolve()
    return new Promise(resolve => {
      const end = () => {
        endRest = null
        timeout.cancel()
        resolve()
      }
      const timeout = options.startTimeout(end, ms)
      endRest = () => {
        if (isStopped || endsWhenWoken) end()
      }
    })
  }

  function complain(error: PortError): void {
    if (monotonicNowMs() - complainedAtMs < complaintPauseMs) return
    complainedAtMs = monotonicNowMs()
    logger.warn({ err: error, lane }, 'the live view cannot read the log')
  }
}
