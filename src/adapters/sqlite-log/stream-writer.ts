// The caller's side of a stream's log-writer thread: gathers appends while the thread handles one message, and sends
// all of them in the next. The event loop neither syncs nor posts a message per request.
//
// A waiting append is either queued or in flight. A queued append was never sent, so if it fails, nothing was stored. An
// append in flight was sent to the thread, so its outcome is unknown if the thread dies or stays silent.

import type { Worker } from 'node:worker_threads'
import { computeBackOffMs } from '#core/back-off.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import type { EncodedRecords, LogCondition } from '#ports/log/event-log.ts'
import { PortError, type PortErrorCode } from '#ports/port-error.ts'
import type { FromLogThread, ToLogThread } from './log-writer-thread.ts'
import type { StreamGap } from './stream-appender.ts'

export interface StreamWriterOptions {
  readonly stream: LogStream
  readonly startThread: () => Worker
  /** The first append starts the thread; until then the stream counts as open. */
  readonly isDormant?: boolean
  /** The wall clock, which determines the age of segments, including those that another process began. */
  readonly nowMs: () => number
  /**
   * Bytes that may wait, including bytes in flight; an append larger than this is accepted only when nothing else waits.
   */
  readonly queueBytesMax: number
  /** Appends that may wait: each belongs to a request, which takes more memory than its bytes. */
  readonly queueCountMax: number
  /** After this long without an answer, appends fail with `timeout`, and new appends are refused until the answer comes. */
  readonly commitTimeoutMs: number
  readonly onSynced?: (synced: SyncReport) => void
  readonly onTrouble?: (what: string) => void
  /** The stream ended at `endOffset` and continues at the later `firstOffset`. */
  readonly onGap?: (gap: StreamGap) => void
  readonly onDamage?: (damage: { path: string; message: string }) => void
}

/** Passed to `onSynced` when a commit's answer arrives, before any of its appends resolves. */
export interface SyncReport {
  readonly stream: LogStream
  readonly unitCount: number
  readonly recordCount: number
  /** When the commit returned in the thread, `process.hrtime.bigint()`. */
  readonly syncedAtNs: bigint
}

interface Append {
  readonly records: EncodedRecords
  /** The length, stored here because a view has no length after its buffer was transferred. */
  readonly bytes: number
  readonly resolve: () => void
  readonly reject: (error: PortError) => void
}

/**
 * Runs of at least this size that own their buffer are transferred; copying smaller runs is cheaper than another object per
 * message.
 */
const transferredBytesMin = 32 * 1024
const messageBytesMax = 8 * 1024 * 1024
const restartDelays = { firstMs: 100, longestMs: 5_000 }
const lookMs = 1_000

export class StreamWriter {
  readonly #options: StreamWriterOptions
  #thread: Worker | null = null
  #state: 'dormant' | 'starting' | 'open' | 'silent' | 'restarting' | 'closed' = 'starting'
  /** The condition last reported by the thread. */
  #condition: LogCondition = { state: 'ok' }
  #queue: Append[] = []
  #inFlight: Append[] | null = null
  #waitingBytes = 0
  #waitingRecords = 0
  #sendScheduled = false
  #flightTimer: NodeJS.Timeout | undefined
  #lookTimer: NodeJS.Timeout | undefined
  /** The thread was asked to check files and disk space and has not answered, so it is not asked again. */
  #isLooking = false
  #restartTimer: NodeJS.Timeout | undefined
  #restarts = 0
  #ready = Promise.withResolvers<void>()
  #idle: (() => void) | null = null

  constructor(options: StreamWriterOptions) {
    this.#options = options
    if (options.isDormant) {
      this.#state = 'dormant'
      this.#ready.resolve()
    } else {
      this.#start()
    }
  }

  /** Settles once: when the thread has opened the stream, or could not. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  get waitingRecords(): number {
    return this.#waitingRecords
  }

  get condition(): LogCondition {
    if (this.#state === 'open' || this.#state === 'dormant' || this.#isGone) return this.#condition
    return { state: 'unavailable', reason: `the log writer is ${this.#state}` }
  }

  get #isGone(): boolean {
    return this.#condition.state === 'files_gone'
  }

  append(records: EncodedRecords): Promise<void> {
    if (records.recordCount === 0) return Promise.resolve()
    if (this.#state === 'dormant') {
      // Appends made while the thread starts wait for the start as for a commit, and fail if the thread cannot open the
      // stream.
      this.#state = 'open'
      this.#start()
    }
    const bytes = records.bytes.byteLength
    const refusal = this.#findRefusal(bytes)
    if (refusal !== null) return Promise.reject(createPortError('unavailable', refusal))
    this.#waitingBytes += bytes
    this.#waitingRecords += records.recordCount
    return new Promise((resolve, reject) => {
      this.#queue.push({ records, bytes, resolve, reject })
      if (this.#inFlight === null && !this.#sendScheduled) {
        // Sends only when this turn of the event loop has read all that it will read, so that one commit takes all of it.
        this.#sendScheduled = true
        setImmediate(() => this.#send())
      }
    })
  }

  /** Commits waiting appends, then ends the thread. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    clearTimeout(this.#restartTimer)
    if (wasOpen && this.#waitingBytes > 0) {
      await new Promise<void>(resolve => {
        this.#idle = resolve
      })
    }
    const thread = this.#thread
    if (thread === null) return
    const ended = new Promise(resolve => thread.once('exit', resolve))
    if (wasOpen) thread.postMessage({ kind: 'close' } satisfies ToLogThread)
    else void thread.terminate()
    await ended
  }

  #findRefusal(bytes: number): string | null {
    if (this.#state !== 'open') return `the log writer is ${this.#state}`
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > this.#options.queueBytesMax)
      return `${this.#waitingBytes} bytes are already waiting for the log`
    const isQueueFull = this.#queue.length >= this.#options.queueCountMax
    return isQueueFull ? `${this.#queue.length} appends are already waiting for the log` : null
  }

  #start(): void {
    let thread: Worker
    try {
      thread = this.#options.startThread()
    } catch (error) {
      this.#threadEnded(error as Error)
      return
    }
    this.#thread = thread
    this.#lookTimer = setInterval(() => this.#look(thread), lookMs).unref()
    let failure: Error | undefined
    thread.on('message', (message: FromLogThread) => {
      if (message.kind === 'failed' && this.#inFlight === null) failure = new Error(message.message)
      else this.#receive(message)
    })
    thread.on('error', error => {
      failure = error instanceof Error ? error : new Error(String(error))
    })
    thread.on('exit', () => {
      if (this.#thread === thread) this.#threadEnded(failure)
    })
  }

  #look(thread: Worker): void {
    if (this.#isLooking || this.#state === 'closed') return
    this.#isLooking = true
    thread.postMessage({ kind: 'look', nowMs: this.#options.nowMs() } satisfies ToLogThread)
  }

  #send(): void {
    this.#sendScheduled = false
    if (this.#inFlight !== null || this.#queue.length === 0 || this.#thread === null) return
    const flight = this.#takeFlight()
    this.#inFlight = flight
    const message = buildAppendMessage(flight, this.#options.nowMs())
    this.#thread.postMessage(
      message,
      message.runs.map(run => run.buffer),
    )
    this.#flightTimer = setTimeout(() => this.#silent(), this.#options.commitTimeoutMs)
  }

  /** Takes queued appends, up to the size limit of one message. */
  #takeFlight(): Append[] {
    const queue = this.#queue
    let bytes = 0
    let count = 0
    while (count < queue.length) {
      bytes += queue[count]!.bytes
      if (count > 0 && bytes > messageBytesMax) break
      count++
    }
    this.#queue = count === queue.length ? [] : queue.slice(count)
    return count === queue.length ? queue : queue.slice(0, count)
  }

  #receive(message: FromLogThread): void {
    switch (message.kind) {
      case 'ready':
        if (this.#state === 'closed') return
        this.#state = 'open'
        this.#ready.resolve()
        return
      case 'looked':
        this.#isLooking = false
        return
      case 'condition':
        this.#condition = message.condition
        if (message.condition.state === 'files_gone') this.#options.onTrouble?.(message.condition.reason)
        return
      case 'gap':
        this.#options.onGap?.(message)
        return
      case 'damage':
        this.#options.onDamage?.(message)
        return
      case 'committed':
      case 'failed':
        this.#land(message)
    }
  }

  #land(answer: FromLogThread & { kind: 'committed' | 'failed' }): void {
    const flight = this.#inFlight!
    this.#inFlight = null
    clearTimeout(this.#flightTimer)
    if (this.#state === 'silent') this.#state = 'open'
    this.#forget(flight)
    if (answer.kind === 'committed') {
      this.#restarts = 0
      this.#options.onSynced?.({
        stream: this.#options.stream,
        unitCount: flight.length,
        recordCount: flight.reduce((count, append) => count + append.records.recordCount, 0),
        syncedAtNs: answer.syncedAtNs,
      })
      for (const append of flight) append.resolve()
    } else {
      if (answer.code !== 'full' && !this.#isGone) this.#options.onTrouble?.(`a commit failed: ${answer.message}`)
      for (const append of flight) append.reject(createPortError(answer.code, answer.message))
      // Fail queued appends, too: they have waited just as long, and in the next message would wait as long again.
      if (answer.code !== 'full') this.#failQueue(answer.message)
    }
    if (this.#queue.length > 0) this.#send()
    else this.#settleIdle()
  }

  /** Called when the thread hangs in a commit: fails all appends and continues to wait for the thread. */
  #silent(): void {
    this.#options.onTrouble?.(`no answer from the log writer for ${this.#options.commitTimeoutMs} ms`)
    if (this.#state === 'open') this.#state = 'silent'
    this.#failAll('the log writer does not respond')
    this.#inFlight = []
    this.#settleIdle()
  }

  #threadEnded(failure: Error | undefined): void {
    this.#thread = null
    this.#isLooking = false
    clearInterval(this.#lookTimer)
    clearTimeout(this.#flightTimer)
    const reason = failure === undefined ? '' : `: ${failure.message}`
    this.#failAll(`the log writer ended${reason}`)
    this.#settleIdle()
    if (this.#state === 'closed') return
    this.#ready.reject(createPortError('unavailable', failure?.message ?? 'the log writer ended'))
    // If the stream never opened, the caller of the start reports that; a stream that was open restarts by itself.
    if (this.#state === 'starting') return
    // Do not restart: a new thread would append to new files, although the process reports that it refuses appends.
    if (this.#isGone) {
      this.#state = 'closed'
      return
    }
    this.#options.onTrouble?.(`the log writer ended; restarting it${reason}`)
    this.#state = 'restarting'
    this.#restartTimer = setTimeout(() => this.#start(), computeBackOffMs(restartDelays, this.#restarts++))
  }

  /** Appends in flight have an unknown outcome; queued appends were never sent. */
  #failAll(message: string): void {
    const flight = this.#inFlight ?? []
    this.#inFlight = null
    this.#forget(flight)
    for (const append of flight) append.reject(createPortError('timeout', message))
    this.#failQueue(message)
  }

  /** Queued appends were never sent, so none is stored. */
  #failQueue(message: string): void {
    const queue = this.#queue
    this.#queue = []
    this.#forget(queue)
    for (const append of queue) append.reject(createPortError('unavailable', message))
  }

  #forget(appends: readonly Append[]): void {
    for (const { records, bytes } of appends) {
      this.#waitingRecords -= records.recordCount
      this.#waitingBytes -= bytes
    }
  }

  #settleIdle(): void {
    this.#idle?.()
    this.#idle = null
  }
}

/** Copies small runs into one buffer and leaves large runs unchanged, in order. */
function buildAppendMessage(flight: readonly Append[], nowMs: number): ToLogThread & { kind: 'append' } {
  const runs: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  for (let index = 0; index < flight.length; ) {
    const start = index
    let smallBytes = 0
    while (index < flight.length && !isTransferable(flight[index]!.records.bytes)) smallBytes += flight[index++]!.bytes
    if (smallBytes > 0) runs.push(joinAppends(flight, start, index, smallBytes))
    if (index < flight.length) runs.push(flight[index++]!.records.bytes)
  }
  for (const run of runs) bytes += run.byteLength
  return { kind: 'append', runs, bytes, nowMs }
}

function joinAppends(flight: readonly Append[], start: number, end: number, bytes: number): Uint8Array<ArrayBuffer> {
  const run = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (let index = start; index < end; index++) {
    run.set(flight[index]!.records.bytes, at)
    at += flight[index]!.bytes
  }
  return run
}

function isTransferable(bytes: Uint8Array<ArrayBuffer>): boolean {
  return bytes.byteLength >= transferredBytesMin && bytes.byteLength === bytes.buffer.byteLength
}

function createPortError(code: PortErrorCode, message: string): PortError {
  return new PortError('event-log', code, new Error(message))
}
