// The thread of one lane that owns the connection to the newest segment: the only place that syncs on the way to a 200.
// One message in, one answer out, in order; the answer is sent after the commit has returned and never before.

import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { LogLane } from '#core/events/captured-event.ts'
import type { PortErrorCode } from '#ports/port-error.ts'
import { DiskRoom } from './disk-room.ts'
import { CommitUnknownError, LaneAppender } from './lane-appender.ts'

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
  | { readonly kind: 'room'; readonly full: boolean }
  /** The lane ended before the state's position, and goes on there. */
  | { readonly kind: 'gap'; readonly endOffset: number; readonly firstOffset: number }

const roomLookMs = 1_000
/** What has to fit for the lane to call itself open while nothing is appended. */
const roomToReport = 64 * 1024

if (parentPort !== null) serve(parentPort, workerData as LogThreadOptions)

function serve(port: NonNullable<typeof parentPort>, options: LogThreadOptions): void {
  const appender = openAppender(options)
  if (appender === null) return
  const room = new DiskRoom(options)
  let reportedFull = false
  const timer = setInterval(() => reportRoom(room.refusal(roomToReport) !== null), roomLookMs)
  port.on('message', (message: ToLogThread) => {
    if (message.kind === 'close') {
      clearInterval(timer)
      appender.close()
      port.close()
      return
    }
    const answer = append(message)
    post(answer)
    if (answer.kind === 'failed' && answer.code === 'full') reportRoom(true)
  })
  post({ kind: 'ready' })

  function append(message: ToLogThread & { kind: 'append' }): FromLogThread {
    try {
      const refusal = room.refusal(message.bytes)
      if (refusal !== null) return { kind: 'failed', code: 'full', message: refusal }
      appender!.append(message.runs, message.nowMs)
      room.wrote(message.bytes)
      return { kind: 'committed', syncedAtNs: process.hrtime.bigint() }
    } catch (error) {
      return { kind: 'failed', code: errorCode(error), message: (error as Error).message }
    }
  }

  function reportRoom(full: boolean): void {
    if (full !== reportedFull) post({ kind: 'room', full })
    reportedFull = full
  }

  function openAppender({ folder, lane, ...others }: LogThreadOptions): LaneAppender | null {
    const { firstOffset, segmentBytesMax, busyTimeoutMs } = others
    try {
      return new LaneAppender({
        ...{ laneFolder: join(folder, lane), firstOffset, segmentBytesMax, busyTimeoutMs },
        onGap: gap => post({ kind: 'gap', ...gap }),
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

function errorCode(error: unknown): PortErrorCode {
  if (error instanceof CommitUnknownError) return 'timeout'
  const code = (error as { code?: unknown }).code
  return code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'unavailable'
}
