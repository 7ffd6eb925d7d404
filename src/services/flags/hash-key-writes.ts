// Writes the rows of log-ins to a store that accepts a few writes at once. Any client with a project's public key can
// cause writes, so projects take turns: however many one project has waiting, another project's write waits for one
// write of each project, not for all of them. A write that is refused or waits too long here never reaches the store, so
// it does not count for the circuit breaker.

import { FairQueue, type QueuedJob } from '#core/fair-queue.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { err } from '#core/result.ts'
import type { HashKeyAssignment, HashKeyOverrideWriter, HashKeyRow } from '#ports/state/subject-store.ts'
import type { CircuitBreakerOptions, Loaded, StoreCircuitBreaker } from './store-circuit-breaker.ts'

export interface HashKeyWritesOptions
  extends Pick<CircuitBreakerOptions, 'timeoutMs' | 'startTimer' | 'monotonicNowMs'> {
  readonly hashKeys: HashKeyOverrideWriter
  readonly guard: StoreCircuitBreaker
  /** How many writes the store works on at once, including abandoned ones until it has answered them. */
  readonly atOnceMax: number
  /** Called for each write that is given up before it reaches the store. */
  readonly onDropped: (reason: 'queue_full' | 'queue_timeout') => void
}

export type HashKeyWrites = ReturnType<typeof createHashKeyWriteQueue>

type Written = Loaded<readonly HashKeyRow[]>

interface WaitingWrite extends QueuedJob {
  readonly begin: () => void
  readonly refuse: () => void
}

/**
 * How many rows the writes under way may write together; a single write may exceed this. SQLite writes one person's rows
 * within a few milliseconds, so this many take some tens of milliseconds.
 */
const rowsAtOnceMax = 1_000
/** How many writes of all projects may wait. */
const waitingMax = 500
const waitingBytesMax = 8 * 1024 * 1024
/**
 * A waiting write holds two ids of at most 400 characters, a timer and closures; each row adds a flag key's reference.
 */
const bytesPerWrite = 3_000
const bytesPerRow = 8

export function createHashKeyWriteQueue(options: HashKeyWritesOptions) {
  const { hashKeys, guard, monotonicNowMs, startTimer, onDropped } = options
  const queue = new FairQueue<WaitingWrite>({ jobCountMax: waitingMax, bytesMax: waitingBytesMax })
  let writeCount = 0
  let rowsUnderWay = 0

  return {
    /**
     * Writes at once while the store has capacity. Otherwise the write waits for its project's turn, in the order of the
     * project's writes; when too many wait, the project with the most waiting writes loses its last one.
     * @param timeoutMs limits waiting and the store's work together. Default and maximum: the guard's own limit.
     */
    keep(assignment: HashKeyAssignment, timeoutMs = options.timeoutMs): MaybePromise<Written> {
      // While there is capacity, no write is waiting: each answer begins as many waiting writes as fit.
      if (hasCapacity()) return begin(assignment, timeoutMs)
      if (guard.isDown()) return err('database_unavailable')
      return enqueueWrite(assignment, timeoutMs)
    },
  }

  function hasCapacity(): boolean {
    return writeCount < options.atOnceMax && rowsUnderWay < rowsAtOnceMax
  }

  function begin(assignment: HashKeyAssignment, timeoutMs: number): MaybePromise<Written> {
    const rowCount = assignment.flagKeys.length
    let answer: Promise<unknown> | undefined
    const written = guard.run(() => {
      const rows = hashKeys.addMissingHashKeys(assignment)
      answer = rows
      return rows
    }, timeoutMs)
    if (answer === undefined) return written // the guard did not call the store
    writeCount++
    rowsUnderWay += rowCount
    const onWriteEnd = () => {
      writeCount--
      rowsUnderWay -= rowCount
      while (hasCapacity()) {
        const next = queue.shift()
        if (next === undefined) return
        next.begin()
      }
    }
    answer.then(onWriteEnd, onWriteEnd)
    return written
  }

  function enqueueWrite(assignment: HashKeyAssignment, timeoutMs: number): Promise<Written> {
    const untilMs = monotonicNowMs() + timeoutMs
    return new Promise(resolve => {
      const refuse = (reason: 'queue_full' | 'queue_timeout') => {
        timer.cancel()
        onDropped(reason)
        resolve(err('timeout'))
      }
      const waiting: WaitingWrite = {
        sender: String(assignment.projectId),
        bytes: bytesPerWrite + assignment.flagKeys.length * bytesPerRow,
        begin() {
          const leftMs = untilMs - monotonicNowMs()
          if (leftMs <= 0) return refuse('queue_timeout')
          timer.cancel()
          resolve(begin(assignment, leftMs))
        },
        refuse: () => refuse('queue_full'),
      }
      const timer = startTimer(() => {
        queue.remove(waiting)
        refuse('queue_timeout')
      }, timeoutMs)
      for (const refused of queue.push(waiting)) refused.refuse()
    })
  }
}
