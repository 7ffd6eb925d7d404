// A small pool of threads for work that would block the event loop. Each thread runs one job at a time. There are two
// bounded queues: one for urgent jobs, which go first, and one for all other jobs; in each queue, senders take turns. A
// thread that dies is replaced. A thread starts when a job finds no other thread free, and ends after a while without jobs:
// most instances never need a thread. What the jobs do is known only to the module that the threads run.

import { Worker } from 'node:worker_threads'
import { FairQueue, type QueuedJob as Turns } from '#core/fair-queue.ts'
import { PortError } from '#ports/port-error.ts'
import type { AnyJob, JobTable, ThreadPool } from '#ports/thread-pool.ts'
import type { Logger } from '#telemetry/log.ts'

export interface DecodeThreads<Jobs extends JobTable<Jobs>> extends ThreadPool<Jobs> {
  /** Ends the threads; jobs that are not done fail. */
  close(): Promise<void>
}

/** The sender of a job and its group, between which `FairQueue` takes turns. */
export type JobSender = Pick<Turns, 'sender' | 'group'>

export interface DecodeThreadsOptions<Jobs extends JobTable<Jobs>> {
  /** URL of the module that calls `serveThreadJobs` with the handlers for these jobs. */
  readonly entry: URL
  readonly threadCount: number
  /** Whether a page or a program waits for the job; such jobs go first. */
  readonly isUrgent: (asked: AnyJob<Jobs>) => boolean
  /**
   * The sender of a job: groups of senders take turns, and so do the senders in each group. When a queue is full, jobs of
   * the senders with the most jobs in it are refused first. When absent, all jobs have the same sender.
   */
  readonly senderOf?: (asked: AnyJob<Jobs>) => JobSender
  /** The most jobs that each of the two queues may hold. */
  readonly queuedJobCountMax: number
  /** The most bytes that each of the two queues may hold. */
  readonly queuedBytesMax: number
  readonly heapMegabytesMax: number
  readonly jobTimeoutMs: number
  /** A thread without a job for this long ends. */
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

interface QueuedJob<Jobs extends JobTable<Jobs>> extends Turns {
  readonly asked: AnyJob<Jobs>
  readonly buffers: ArrayBuffer[]
  /** Called with the message of the thread that ran the job. */
  resolve(outcome: Jobs[keyof Jobs][1]): void
  reject(error: PortError): void
}

/** After this many urgent jobs in a row, a job that is not urgent runs, so that such jobs do not wait forever. */
const urgentRunMax = 4

/** A thread that dies sooner than this after its start is replaced only when this time has passed. */
const restartPauseMs = 1_000
const portName = 'decode-threads'
const oneSender: JobSender = { sender: '' }

export function createDecodeThreads<Jobs extends JobTable<Jobs>>(
  options: DecodeThreadsOptions<Jobs>,
): DecodeThreads<Jobs> {
  const { senderOf = () => oneSender } = options
  const limits = { jobCountMax: options.queuedJobCountMax, bytesMax: options.queuedBytesMax }
  const urgent = new FairQueue<QueuedJob<Jobs>>(limits)
  const others = new FairQueue<QueuedJob<Jobs>>(limits)
  /**
   * The most jobs at once that are not urgent. One thread stays free for urgent jobs: nothing preempts others, which may
   * take seconds.
   */
  const othersAtOnceMax = Math.max(1, options.threadCount - 1)
  let urgentRun = 0
  let closing = false
  const slots = Array.from({ length: options.threadCount }, () => startSlot())

  return {
    run(kind, job, bytes, buffers, gone) {
      return new Promise((resolve, reject) => {
        if (closing) return reject(new PortError(portName, 'unavailable', new Error('closing')))
        const asked = { kind, job }
        const queue = options.isUrgent(asked) ? urgent : others
        const queued: QueuedJob<Jobs> = { asked, bytes, buffers, ...senderOf(asked), resolve, reject }
        for (const refused of queue.push(queued))
          refused.reject(new PortError(portName, 'unavailable', new Error('queue is full')))
        for (const slot of slots) if (slot.isRunning()) slot.takeJob()
        for (const slot of slots) slot.takeJob()
        const drop = () => {
          if (queue.remove(queued)) reject(new PortError(portName, 'unavailable', new Error('the client disconnected')))
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

  function dequeueJob(): QueuedJob<Jobs> | undefined {
    const othersMay = others.jobCount > 0 && slots.filter(slot => slot.hasOther()).length < othersAtOnceMax
    const isUrgentsTurn = urgent.jobCount > 0 && (urgentRun < urgentRunMax || !othersMay)
    if (!isUrgentsTurn && !othersMay) return undefined
    urgentRun = isUrgentsTurn ? urgentRun + 1 : 0
    return (isUrgentsTurn ? urgent : others).shift()
  }

  function startSlot() {
    let thread: Worker | null = null
    let current: QueuedJob<Jobs> | null = null
    /** Set while no thread may start, because the last one died soon after its start. */
    let pause: NodeJS.Timeout | undefined
    /** Ends the current job when it takes too long, and ends a thread that has been idle for long. */
    let watch: NodeJS.Timeout | undefined
    return {
      takeJob,
      close,
      isRunning: () => thread !== null,
      hasOther: () => current !== null && !options.isUrgent(current.asked),
    }

    function start(): Worker {
      const startedAtMs = performance.now()
      let cause: unknown
      const worker = new Worker(options.entry, {
        name: 'pennon decode',
        resourceLimits: { maxOldGenerationSizeMb: options.heapMegabytesMax },
      })
      worker.unref()
      worker.on('message', (outcome: Jobs[keyof Jobs][1]) => {
        if (thread !== worker) return // given up already
        endCurrent()?.resolve(outcome)
        takeJob()
        if (current === null) watch = setTimeout(retire, options.idleMs).unref()
      })
      worker.on('error', (error: unknown) => {
        cause = error
      })
      worker.on('exit', exitCode => {
        if (thread !== worker) return // retired or given up: the rest was done then
        thread = null
        cause ??= new Error(`exit code ${exitCode}`)
        endCurrent()?.reject(new PortError(portName, 'unavailable', cause))
        if (closing) return
        reportDeath(cause)
        const leftMs = restartPauseMs - (performance.now() - startedAtMs)
        if (leftMs <= 0) takeJob()
        else pause = setTimeout(endPause, leftMs).unref()
      })
      thread = worker
      return worker
    }

    /** Logs and counts the death of a thread. Another thread starts when the next job needs it. */
    function reportDeath(cause: unknown): void {
      options.logger.error({ err: cause }, 'decode thread died; replacing it')
      options.onRestart()
    }

    function endPause(): void {
      pause = undefined
      takeJob()
    }

    function endCurrent(): QueuedJob<Jobs> | null {
      clearTimeout(watch)
      const ended = current
      current = null
      return ended
    }

    function takeJob(): void {
      if (current !== null || closing || pause !== undefined) return
      const next = dequeueJob()
      if (next === undefined) return
      clearTimeout(watch)
      current = next
      try {
        const worker = thread ?? start()
        worker.postMessage(next.asked, next.buffers)
        watch = setTimeout(giveUp, options.jobTimeoutMs).unref()
      } catch (cause) {
        // The system cannot start another thread, or the job cannot be sent to the thread.
        endCurrent()?.reject(new PortError(portName, 'unavailable', cause))
        reportDeath(cause)
        pause = setTimeout(endPause, restartPauseMs).unref()
      }
    }

    /** Ends a job that takes too long by ending its thread, since nothing else stops a computation. */
    function giveUp(): void {
      const cause = new Error(`no answer within ${options.jobTimeoutMs} ms`)
      endCurrent()?.reject(new PortError(portName, 'timeout', cause))
      retire()
      reportDeath(cause)
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
