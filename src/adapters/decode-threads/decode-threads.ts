// A small pool of threads for work that would hold the event loop: one job per thread at a time, two bounded queues before
// them (urgent jobs pass the others and are bounded apart from them) in which senders take turns, and a thread that dies is
// replaced. A thread starts with the first job that finds no other free, and ends after a while without jobs: most instances
// never need one. What a job is, is known to the thread's entry alone.

import { Worker } from 'node:worker_threads'
import { FairQueue, type QueuedJob as Turns } from '#core/fair-queue.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'

export interface DecodeThreads<Job, Outcome> {
  /**
   * Runs a job. `buffers` move to the thread with it.
   * @param gone aborted when nobody waits for the outcome any more: the job is dropped if it still waits for a thread then.
   * @throws PortError `unavailable` when the job's queue is at its bound, the job was dropped, the thread died or the pool is
   *   closing; `timeout` when the job took longer than any may: its thread is ended.
   */
  run(job: Job, bytes: number, buffers: ArrayBuffer[], gone?: AbortSignal): Promise<Outcome>
  /** Ends the threads; jobs that are not done fail. */
  close(): Promise<void>
}

/** As `FairQueue` takes them. */
export type JobSender = Pick<Turns, 'sender' | 'group'>

export interface DecodeThreadsOptions<Job> {
  /** Module that takes jobs by `parentPort` and posts one message for each. */
  readonly entry: URL
  readonly threadCount: number
  /** Which jobs a page or a program stands still for; these go first. */
  readonly isUrgent: (job: Job) => boolean
  /**
   * Whose job it is: groups of senders take turns, and the senders in each; where a queue is full the ones with the most in it
   * are refused first. When absent, all jobs are one sender's.
   */
  readonly senderOf?: (job: Job) => JobSender
  /** Jobs that each of the two queues may hold. */
  readonly queuedJobCountMax: number
  /** Bytes that each of the two queues may hold. */
  readonly queuedBytesMax: number
  readonly heapMegabytesMax: number
  readonly jobTimeoutMs: number
  /** A thread without a job for so long is ended. */
  readonly idleMs: number
  readonly logger: Logger
  readonly onRestart: () => void
}

export const decodeThreadDefaults = {
  threadCount: 2,
  queuedJobCountMax: 64,
  queuedBytesMax: 256 * 1024 * 1024,
  heapMegabytesMax: 1024,
  jobTimeoutMs: 10_000,
  idleMs: 60_000,
} as const

interface QueuedJob<Job, Outcome> extends Turns {
  readonly job: Job
  readonly buffers: ArrayBuffer[]
  resolve(outcome: Outcome): void
  reject(error: PortError): void
}

/** So many urgent jobs in a row, then one of the others: they wait longer, but not for ever. */
const urgentRunMax = 4

/** A thread that dies sooner than this after its start is replaced only after the rest of it. */
const restartPauseMs = 1_000
const portName = 'decode-threads'
const oneSender: JobSender = { sender: '' }

export function createDecodeThreads<Job, Outcome>(options: DecodeThreadsOptions<Job>): DecodeThreads<Job, Outcome> {
  const { senderOf = () => oneSender } = options
  const limits = { jobCountMax: options.queuedJobCountMax, bytesMax: options.queuedBytesMax }
  const urgent = new FairQueue<QueuedJob<Job, Outcome>>(limits)
  const others = new FairQueue<QueuedJob<Job, Outcome>>(limits)
  /** One thread is for urgent jobs alone: nothing preempts a computation, and the others may take seconds each. */
  const othersAtOnceMax = Math.max(1, options.threadCount - 1)
  let urgentRun = 0
  let closing = false
  const slots = Array.from({ length: options.threadCount }, () => startSlot())

  return {
    run(job, bytes, buffers, gone) {
      return new Promise((resolve, reject) => {
        if (closing) return reject(new PortError(portName, 'unavailable', new Error('closing')))
        const queue = options.isUrgent(job) ? urgent : others
        const queued: QueuedJob<Job, Outcome> = { job, bytes, buffers, ...senderOf(job), resolve, reject }
        for (const refused of queue.push(queued))
          refused.reject(new PortError(portName, 'unavailable', new Error('queue is full')))
        for (const slot of slots) if (slot.isRunning()) slot.takeJob()
        for (const slot of slots) slot.takeJob()
        const drop = () => {
          if (queue.remove(queued)) reject(new PortError(portName, 'unavailable', new Error('the client is gone')))
        }
        if (gone?.aborted) drop()
        else gone?.addEventListener('abort', drop, { once: true })
      })
    },
    async close() {
      closing = true
      for (const queued of [...urgent.clear(), ...others.clear()])
        queued.reject(new PortError(portName, 'unavailable', new Error('closing')))
      await Promise.all(slots.map(slot => slot.close()))
    },
  }

  function nextJob(): QueuedJob<Job, Outcome> | undefined {
    const othersMay = others.jobCount > 0 && slots.filter(slot => slot.hasOther()).length < othersAtOnceMax
    const isUrgentsTurn = urgent.jobCount > 0 && (urgentRun < urgentRunMax || !othersMay)
    if (!isUrgentsTurn && !othersMay) return undefined
    urgentRun = isUrgentsTurn ? urgentRun + 1 : 0
    return (isUrgentsTurn ? urgent : others).shift()
  }

  function startSlot() {
    let thread: Worker | null = null
    let current: QueuedJob<Job, Outcome> | null = null
    /** Runs after the death of a thread that had only just started, before the next one starts. */
    let pause: NodeJS.Timeout | undefined
    /** Ends the job under way when it takes too long, or a thread that has been idle for long. */
    let watch: NodeJS.Timeout | undefined
    return {
      takeJob,
      close,
      isRunning: () => thread !== null,
      hasOther: () => current !== null && !options.isUrgent(current.job),
    }

    function start(): Worker {
      const startedAtMs = performance.now()
      let cause: unknown
      const worker = new Worker(options.entry, {
        name: 'pennon decode',
        resourceLimits: { maxOldGenerationSizeMb: options.heapMegabytesMax },
      })
      worker.unref()
      worker.on('message', (outcome: Outcome) => {
        if (thread !== worker) return // given up already
        endCurrent()?.resolve(outcome)
        takeJob()
        if (current === null) watch = setTimeout(retire, options.idleMs).unref()
      })
      worker.on('error', (error: unknown) => {
        cause = error
      })
      worker.on('exit', exitCode => {
        if (thread !== worker) return // retired, or given up: then whoever did it has seen to the rest
        thread = null
        cause ??= new Error(`exit code ${exitCode}`)
        endCurrent()?.reject(new PortError(portName, 'unavailable', cause))
        if (closing) return
        noteDeath(cause)
        const leftMs = restartPauseMs - (performance.now() - startedAtMs)
        if (leftMs <= 0) takeJob()
        else pause = setTimeout(endPause, leftMs).unref()
      })
      thread = worker
      return worker
    }

    /** The next job starts another one. */
    function noteDeath(cause: unknown): void {
      options.logger.error({ err: cause }, 'a decode thread died and is replaced')
      options.onRestart()
    }

    function endPause(): void {
      pause = undefined
      takeJob()
    }

    function endCurrent(): QueuedJob<Job, Outcome> | null {
      clearTimeout(watch)
      const ended = current
      current = null
      return ended
    }

    function takeJob(): void {
      if (current !== null || closing || pause !== undefined) return
      const next = nextJob()
      if (next === undefined) return
      clearTimeout(watch)
      current = next
      try {
        const worker = thread ?? start()
        worker.postMessage(next.job, next.buffers)
        watch = setTimeout(giveUp, options.jobTimeoutMs).unref()
      } catch (cause) {
        // No thread left in the system, or a job that cannot be sent.
        endCurrent()?.reject(new PortError(portName, 'unavailable', cause))
        noteDeath(cause)
        pause = setTimeout(endPause, restartPauseMs).unref()
      }
    }

    /** The thread goes with its job: nothing else stops a computation. */
    function giveUp(): void {
      const cause = new Error(`no answer within ${options.jobTimeoutMs} ms`)
      endCurrent()?.reject(new PortError(portName, 'timeout', cause))
      retire()
      noteDeath(cause)
      takeJob()
    }

    function retire(): void {
      clearTimeout(watch)
      void thread?.terminate()
      thread = null
    }

    async function close(): Promise<void> {
      clearTimeout(pause)
      clearTimeout(watch)
      await thread?.terminate()
    }
  }
}
