// Serves projects round robin at a store that accepts a few calls at once. Any client with a project's public key can
// make it write. However many calls one project has waiting, another project's call waits for one call of each project,
// not for all of them. A call that is refused or waits too long here never reaches the store, so it does not count for
// the circuit breaker.

import { FairQueue } from '#core/fair-queue.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { err } from '#core/result.ts'
import type { HashKeyAssignment, HashKeyOverrideWriter, HashKeyRow } from '#ports/state/hash-key-overrides.ts'
import type { GuardOptions, Loaded, StoreGuard } from './store-guard.ts'

export interface StoreRoundRobinOptions extends Pick<GuardOptions, 'timeoutMs' | 'startTimer' | 'monotonicNowMs'> {
  readonly guard: StoreGuard
  /** How many calls the store works on at once, including abandoned ones until it has answered them. */
  readonly atOnceMax: number
  /** How many rows these calls write together; one call may exceed it. Default: 1,000. */
  readonly rowsAtOnceMax?: number
  /** How many calls of all projects may wait. Default: 500. */
  readonly waitingMax?: number
  /** Called for each call that is given up before it reaches the store. */
  readonly onDropped: (reason: 'queue_full' | 'queue_timeout') => void
}

export interface StoreRoundRobin {
  /**
   * Calls the store at once while it has capacity. Otherwise the call waits for its project's turn, in the order of the
   * project's calls; when too many wait, the project with the most loses its last one.
   * @param rowCount how many rows the call writes.
   * @param timeoutMs limits waiting and the store's work together. Default and maximum: the guard's own limit.
   */
  run<T>(projectId: number, rowCount: number, call: () => Promise<T>, timeoutMs?: number): MaybePromise<Loaded<T>>
}

interface WaitingCall {
  readonly sender: string
  readonly bytes: number
  /** Null once the call was given up while it waited. */
  begin: (() => void) | null
  readonly refuse: () => void
}

/** SQLite writes one person's rows within a few milliseconds, so this many rows take some tens of milliseconds. */
const defaultRowsAtOnceMax = 1_000
const defaultWaitingMax = 500
const waitingBytesMax = 8 * 1024 * 1024
/**
 * A waiting call holds two ids of at most 400 characters, a timer and closures; each row adds a flag key's reference.
 */
const bytesPerCall = 3_000
const bytesPerRow = 8

export function createStoreRoundRobin(options: StoreRoundRobinOptions): StoreRoundRobin {
  const { guard, monotonicNowMs, startTimer, onDropped, rowsAtOnceMax = defaultRowsAtOnceMax } = options
  const { waitingMax = defaultWaitingMax } = options
  const queue = new FairQueue<WaitingCall>({ jobCountMax: waitingMax, bytesMax: waitingBytesMax })
  let callCount = 0
  let rowsUnderWay = 0

  return {
    run(projectId, rowCount, call, timeoutMs = options.timeoutMs) {
      // While there is capacity, no call is waiting: each answer starts as many waiting calls as fit.
      if (hasCapacity()) return begin(rowCount, call, timeoutMs)
      if (guard.isDown()) return err('database_unavailable')
      return wait(projectId, rowCount, call, timeoutMs)
    },
  }

  function hasCapacity(): boolean {
    return callCount < options.atOnceMax && rowsUnderWay < rowsAtOnceMax
  }

  function begin<T>(rowCount: number, call: () => Promise<T>, timeoutMs: number): MaybePromise<Loaded<T>> {
    let answer: Promise<T> | undefined
    const loaded = guard.run(() => {
      answer = call()
      return answer
    }, timeoutMs)
    if (answer === undefined) return loaded // the guard did not call the store
    callCount++
    rowsUnderWay += rowCount
    const noteCallEnd = () => {
      callCount--
      rowsUnderWay -= rowCount
      beginWaiting()
    }
    answer.then(noteCallEnd, noteCallEnd)
    return loaded
  }

  function wait<T>(projectId: number, rowCount: number, call: () => Promise<T>, timeoutMs: number): Promise<Loaded<T>> {
    const untilMs = monotonicNowMs() + timeoutMs
    return new Promise(resolve => {
      const refuse = (reason: 'queue_full' | 'queue_timeout') => {
        waiting.begin = null
        timer.cancel()
        onDropped(reason)
        resolve(err('timeout'))
      }
      const timer = startTimer(() => refuse('queue_timeout'), timeoutMs)
      const waiting: WaitingCall = {
        sender: String(projectId),
        bytes: bytesPerCall + rowCount * bytesPerRow,
        begin() {
          const leftMs = untilMs - monotonicNowMs()
          if (leftMs <= 0) return refuse('queue_timeout')
          timer.cancel()
          resolve(begin(rowCount, call, leftMs))
        },
        refuse: () => refuse('queue_full'),
      }
      for (const refused of queue.push(waiting)) if (refused.begin !== null) refused.refuse()
    })
  }

  function beginWaiting(): void {
    while (hasCapacity()) {
      const next = queue.shift()
      if (next === undefined) return
      next.begin?.()
    }
  }
}

/** Writes the rows of a log-in in its project's turn. @param timeoutMs as in `StoreRoundRobin.run`. */
export function keepHashKeyInTurn(
  roundRobin: StoreRoundRobin,
  hashKeys: HashKeyOverrideWriter,
  assignment: HashKeyAssignment,
  timeoutMs?: number,
): MaybePromise<Loaded<readonly HashKeyRow[]>> {
  const { projectId, flagKeys } = assignment
  return roundRobin.run(projectId, flagKeys.length, () => hashKeys.keepHashKey(assignment), timeoutMs)
}
