// The thread of one lane that owns the connection to the newest segment: the only place that syncs on the way to a 200.
// One message in, one answer out, in order; the answer is sent after the commit has returned and never before.
//
// It also finds what stands in the way of appends when there are none: once a second it looks at the files and at the room,
// and after a failed commit it tries one of its own, since clients that got a 503 may send nothing more.

import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { LogLane } from '#core/events/captured-event.ts'
import type { LogCondition } from '#ports/event-log.ts'
import type { PortErrorCode } from '#ports/port-error.ts'
import { DiskRoom } from './disk-room.ts'
import { FilesGoneError, LaneAppender, type LaneGap } from './lane-appender.ts'
import { CommitUnknownError } from './writable-segment.ts'

export interface LogThreadOptions {
  readonly folder: string
  readonly lane: LogLane
  readonly firstOffset: number
  readonly segmentBytesMax: number
  readonly logBytesMax: number
  readonly minFreeBytes: number
  readonly busyTimeoutMs: number
}

export type ToLogThread =
  | {
      readonly kind: 'append'
      readonly runs: Uint8Array<ArrayBuffer>[]
      readonly bytes: number
      readonly nowMs: number
    }
  | { readonly kind: 'close' }

export type FromLogThread =
  | { readonly kind: 'ready' }
  /** `syncedAtNs` on the process's monotonic clock, taken when the commit had returned. */
  | { readonly kind: 'committed'; readonly syncedAtNs: bigint }
  | { readonly kind: 'failed'; readonly code: PortErrorCode; readonly message: string }
  /** When it changed; before the answer to the append that changed it. */
  | { readonly kind: 'condition'; readonly condition: LogCondition }
  /** The lane ended before where it has to go on. */
  | ({ readonly kind: 'gap' } & LaneGap)
  /** A segment was set aside, and is at `path` now. */
  | { readonly kind: 'damage'; readonly path: string; readonly message: string }

const lookMs = 1_000
/** What has to fit for the lane to call itself open while nothing is appended. */
const roomToReport = 64 * 1024
const ok: LogCondition = { state: 'ok' }

if (parentPort !== null) serve(parentPort, workerData as LogThreadOptions)

function serve(port: NonNullable<typeof parentPort>, options: LogThreadOptions): void {
  const opened = openAppender(options)
  if (opened === null) return
  const appender = opened
  const room = new DiskRoom(options)
  let reported: LogCondition = ok
  /** Latest first: a commit failed since the last one that did not. */
  let isFailing = false
  const timer = setInterval(look, lookMs)
  port.on('message', (message: ToLogThread) => {
    if (message.kind === 'close') {
      clearInterval(timer)
      appender.close()
      port.close()
    } else post(append(message))
  })
  post({ kind: 'ready' })

  function append(message: ToLogThread & { kind: 'append' }): FromLogThread {
    if (reported.state === 'files_gone') return { kind: 'failed', code: 'unavailable', message: reported.reason }
    try {
      const full = fullness(message.bytes)
      if (full !== null) {
        report(full)
        return { kind: 'failed', code: 'full', message: full.reason }
      }
      appender.append(message.runs, message.nowMs)
      room.wrote(message.bytes)
      isFailing = false
      report(ok)
      return { kind: 'committed', syncedAtNs: process.hrtime.bigint() }
    } catch (error) {
      return { kind: 'failed', code: errorCode(error), message: reportFailure(error) }
    }
  }

  function look(): void {
    if (reported.state === 'files_gone') return
    try {
      appender.check()
      if (isFailing) appender.probe()
      isFailing = false
      report(fullness(roomToReport) ?? ok)
    } catch (error) {
      reportFailure(error)
    }
  }

  /** Null when so many bytes may be appended. */
  function fullness(bytes: number): Exclude<LogCondition, { state: 'ok' }> | null {
    const reason = room.refusal(bytes)
    if (reason !== null) return { state: 'full', reason }
    const importReason = options.lane === 'historical' ? room.importRefusal(bytes) : null
    return importReason === null ? null : { state: 'imports_full', reason: importReason }
  }

  /** @returns what was reported. */
  function reportFailure(error: unknown): string {
    const { message } = error as Error
    const diskError = error instanceof FilesGoneError ? null : appender.diskError()
    const reason = diskError === null || message.includes(diskError) ? message : `${message} (${diskError})`
    isFailing = true
    if (error instanceof FilesGoneError) report({ state: 'files_gone', reason })
    else if (errorCode(error) === 'full') report({ state: 'full', reason: `the disk has no room left: ${reason}` })
    else report({ state: 'unavailable', reason })
    return reason
  }

  function report(condition: LogCondition): void {
    const isSame = condition.state === reported.state && reasonOf(condition) === reasonOf(reported)
    reported = condition
    if (!isSame) post({ kind: 'condition', condition })
  }

  function openAppender({ folder, lane, ...others }: LogThreadOptions): LaneAppender | null {
    const { firstOffset, segmentBytesMax, busyTimeoutMs } = others
    try {
      return new LaneAppender({
        ...{ laneFolder: join(folder, lane), firstOffset, segmentBytesMax, busyTimeoutMs },
        onGap: gap => post({ kind: 'gap', ...gap }),
        onDamage: ({ path, error }) => post({ kind: 'damage', path, message: (error as Error).message }),
      })
    } catch (error) {
      post({ kind: 'failed', code: errorCode(error), message: (error as Error).message })
      return null
    }
  }

  function post(message: FromLogThread): void {
    port.postMessage(message)
  }
}

function reasonOf(condition: LogCondition): string {
  return condition.state === 'ok' ? '' : condition.reason
}

function errorCode(error: unknown): PortErrorCode {
  if (error instanceof CommitUnknownError) return 'timeout'
  const code = (error as { code?: unknown }).code
  return code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'unavailable'
}
