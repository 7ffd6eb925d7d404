// Follows the end of one stream of the log while there are watchers. It reads new records when woken, and otherwise
// every 200 ms, and passes on the wanted ones; others are skipped undecoded. It shares its event loop with requests, so
// it works in short slices and rests three times as long as it worked.

import type { DecodedRecord } from '#core/events/captured-event.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import { RecordCursor } from '#core/log/record-decoder.ts'
import type { Timers } from '#ports/clock.ts'
import type { EventLogReader, LogRun } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'

export interface LogTailOptions extends Pick<Timers, 'startTimeout'> {
  readonly log: Pick<EventLogReader, 'readRuns' | 'readStreamStatus'>
  readonly stream: LogStream
  /** Reading begins here. */
  readonly fromOffset: number
  /** @param kind one of the record kinds of `record-layout.ts`. */
  readonly isWanted: (projectId: number, kind: number) => boolean
  /** Takes a record whose header is wanted; a damaged record may belong to any project. */
  readonly take: (record: DecodedRecord, offset: number) => void
  /** Called after each slice, before yielding to the event loop. */
  readonly rest: () => void
  /**
   * Called when reading skips to the end, because records come faster than they can be read, or because they cannot be
   * read.
   */
  readonly onLost: (reason: 'behind' | 'unreadable') => void
  /** Called when the tail ended because of a bug. */
  readonly onFailed: () => void
  readonly nowMs: () => number
  readonly monotonicNowMs: () => number
  /**
   * Processor time of this thread so far, ms: unlike elapsed time, it does not grow with the load of other processes.
   */
  readonly workedMs: () => number
  readonly logger: Logger
}

export type LogTail = ReturnType<typeof startLogTail>

/** How often it reads without being woken: commits of other fronts do not wake it. */
const pollMs = 200
/** The shortest pause between two reads of a quiet stream, so that several commits are read at once. */
const restMsMin = 20
/** Rests three times as long as it worked, so that it takes at most a quarter of the thread's time. */
const restFactor = 3
const sliceMsMax = 4
/** Records between two checks of the clock. */
const recordsPerLook = 16
const bytesPerRead = 512 * 1024
/** A tail that lags by this much skips to the end, so that watchers see current events. */
const behindMsMax = 5_000
const failureRestMs = 1_000
const complaintPauseMs = 10_000

export function startLogTail(options: LogTailOptions) {
  const { log, stream, monotonicNowMs, logger } = options
  let position = options.fromOffset
  let isStopped = false
  let isWoken = false
  let endRest: (() => void) | null = null
  /** Since when every read of the log has returned as much as it may; null when the last read did not. */
  let fullSinceMs: number | null = null
  let complainedAtMs = Number.NEGATIVE_INFINITY
  const ended = follow().catch(error => {
    logger.error({ err: error, stream }, 'reading the log for live views failed')
    options.onFailed()
  })

  return {
    /** Offset of the next record to take. */
    get position() {
      return position
    },
    /** Call when something was appended. Cheap and repeatable. */
    wake() {
      isWoken = true
      endRest?.()
    },
    stop() {
      isStopped = true
      endRest?.()
    },
    /** Resolves when reading has ended. */
    ended,
  }

  async function follow(): Promise<void> {
    while (!isStopped) {
      const readAtMs = monotonicNowMs()
      const workedBeforeMs = options.workedMs()
      isWoken = false
      const runs = await readNextRuns()
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

  /** Reads the next runs of records. @returns null when the log cannot be read now. */
  async function readNextRuns(): Promise<readonly LogRun[] | null> {
    try {
      const { runs, nextOffset } = await log.readRuns(stream, position, bytesPerRead)
      if (runs.length === 0) position = nextOffset
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
      const cursor = new RecordCursor(run.bytes, run.offsets.length)
      for (const offset of run.offsets) {
        if (offset < position) {
          cursor.skip(1)
          continue
        }
        position = offset + 1
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
      const { endOffset } = await log.readStreamStatus(stream, position)
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
    logger.warn({ err: error, stream }, 'live views cannot read the log')
  }
}
