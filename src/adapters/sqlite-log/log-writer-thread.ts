// The thread of one stream, which owns the connection to the newest segment. Its commit is the only sync before a 200.
// Each message gets one answer, in order, and never before its commit has returned.
//
// Detects failures without appends, too: once a second, the thread is asked to check the files and the disk space. After a
// failed commit, it tries a commit without records, since clients that got a 503 may send nothing more. It also ends a
// segment that has reached its age limit.

import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import type { LogCondition } from '#ports/log/event-log.ts'
import type { PortErrorCode } from '#ports/port-error.ts'
import { lowerThreadPriority } from '#telemetry/thread-priority.ts'
import { DiskSpace } from './disk-space.ts'
import { FilesGoneError, StreamAppender, type StreamGap } from './stream-appender.ts'
import { CommitUnknownError } from './writable-segment.ts'

export interface LogThreadOptions {
  readonly folder: string
  readonly stream: LogStream
  readonly traffic: Traffic
  readonly firstOffset: number
  readonly segmentBytesMax: number
  readonly segmentAgeMs: number
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
  /** `nowMs`: from the clock of appends, which stamps segments. */
  | { readonly kind: 'look'; readonly nowMs: number }
  | { readonly kind: 'close' }

export type FromLogThread =
  | { readonly kind: 'ready' }
  /** `syncedAtNs`: the process's monotonic clock when the commit had returned. */
  | { readonly kind: 'committed'; readonly syncedAtNs: bigint }
  | { readonly kind: 'failed'; readonly code: PortErrorCode; readonly message: string }
  | { readonly kind: 'looked' }
  /** Sent on each change of the condition, before the answer to the append that caused the change. */
  | { readonly kind: 'condition'; readonly condition: LogCondition }
  /** The stream ended before the offset at which the process has to continue. */
  | ({ readonly kind: 'gap' } & StreamGap)
  /** A segment was set aside and is now at `path`. */
  | { readonly kind: 'damage'; readonly path: string; readonly message: string }

/** The stream reports `ok` between appends only if this many bytes fit. */
const probedBytes = 64 * 1024
const ok: LogCondition = { state: 'ok' }

if (parentPort !== null) serve(parentPort, workerData as LogThreadOptions)

function serve(port: NonNullable<typeof parentPort>, options: LogThreadOptions): void {
  if (options.traffic === 'import') lowerThreadPriority()
  const opened = openAppender()
  if (opened === null) return
  const appender = opened
  const space = new DiskSpace(options)
  let reported: LogCondition = ok
  /** The latest commit failed. */
  let isFailing = false
  port.on('message', (message: ToLogThread) => {
    switch (message.kind) {
      case 'append':
        return post(append(message))
      case 'look':
        checkCondition(message.nowMs)
        return post({ kind: 'looked' })
      case 'close':
        appender.close()
        port.close()
    }
  })
  post({ kind: 'ready' })

  function append(message: ToLogThread & { kind: 'append' }): FromLogThread {
    if (reported.state === 'files_gone') return { kind: 'failed', code: 'unavailable', message: reported.reason }
    try {
      const full = findFullCondition(message.bytes)
      if (full !== null) {
        report(full)
        return { kind: 'failed', code: 'full', message: full.reason }
      }
      appender.append(message.runs, message.nowMs)
      space.wrote(message.bytes)
      isFailing = false
      report(ok)
      return { kind: 'committed', syncedAtNs: process.hrtime.bigint() }
    } catch (error) {
      return { kind: 'failed', code: toErrorCode(error), message: reportFailure(error) }
    }
  }

  function checkCondition(nowMs: number): void {
    if (reported.state === 'files_gone') return
    try {
      appender.check()
      if (isFailing) appender.probe()
      appender.endOldSegment(nowMs)
      isFailing = false
      report(findFullCondition(probedBytes) ?? ok)
    } catch (error) {
      reportFailure(error)
    }
  }

  /** The condition that keeps this many bytes from being appended; null when they may be appended. */
  function findFullCondition(bytes: number): Exclude<LogCondition, { state: 'ok' }> | null {
    const reason = space.refusal(bytes)
    if (reason !== null) return { state: 'full', reason }
    const importReason = options.traffic === 'import' ? space.importRefusal(bytes) : null
    return importReason === null ? null : { state: 'imports_full', reason: importReason }
  }

  /** Reports a failed commit to the main thread. @returns the reason that it reported. */
  function reportFailure(error: unknown): string {
    const { message } = error as Error
    const diskError = error instanceof FilesGoneError ? null : appender.diskError()
    const reason = diskError === null || message.includes(diskError) ? message : `${message} (${diskError})`
    isFailing = true
    if (error instanceof FilesGoneError) report({ state: 'files_gone', reason })
    else if (toErrorCode(error) === 'full') report({ state: 'full', reason: `the disk is full: ${reason}` })
    else report({ state: 'unavailable', reason })
    return reason
  }

  function report(condition: LogCondition): void {
    const isSame = condition.state === reported.state && getReason(condition) === getReason(reported)
    reported = condition
    if (!isSame) post({ kind: 'condition', condition })
  }

  function openAppender(): StreamAppender | null {
    try {
      return new StreamAppender({
        ...options,
        streamFolder: join(options.folder, options.stream),
        onGap: gap => post({ kind: 'gap', ...gap }),
        onDamage: ({ path, error }) => post({ kind: 'damage', path, message: (error as Error).message }),
      })
    } catch (error) {
      post({ kind: 'failed', code: toErrorCode(error), message: (error as Error).message })
      return null
    }
  }

  function post(message: FromLogThread): void {
    port.postMessage(message)
  }
}

function getReason(condition: LogCondition): string {
  return condition.state === 'ok' ? '' : condition.reason
}

function toErrorCode(error: unknown): PortErrorCode {
  if (error instanceof CommitUnknownError) return 'timeout'
  const code = (error as { code?: unknown }).code
  return code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'unavailable'
}
