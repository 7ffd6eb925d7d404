// The slices of all evaluations of a front: however many are under way, a turn of the event loop spends about one slice on
// them. An evaluation that ends before it looks at the time needs no slice: twenty flags do not wait for thousands.

import type { MaybePromise } from '#core/maybe-promise.ts'

export const unfinished: unique symbol = Symbol('unfinished')

/**
 * Goes on where it stopped the last time. It asks `isTimeUp` after pieces of work of half a millisecond or so, never before one.
 * @returns `unfinished` when it stopped because the time was up.
 */
export type SlicedWork<T> = (isTimeUp: () => boolean) => T | typeof unfinished

export interface SliceQueue {
  /**
   * Begins at once. Where others are waiting, or the slice of this turn is over, it goes on when those that came before are
   * done: first come, first served. What the work throws, its own caller gets.
   * @returns `full` when it would have to wait and too many do.
   */
  run<T>(work: SlicedWork<T>): MaybePromise<T> | 'full'
}

export interface SliceQueueOptions {
  readonly sliceMs: number
  readonly waitingMax: number
  readonly monotonicNowMs: () => number
  /** Calls back once the event loop has looked after everybody else. Absent: Node's. */
  readonly inNextTurn?: (callback: () => void) => void
}

export function createSliceQueue(options: SliceQueueOptions): SliceQueue {
  const { sliceMs, waitingMax, monotonicNowMs, inNextTurn = setImmediate } = options
  /** In order of arrival, the first of them under way; each answers whether it is done. */
  const waiting: ((isTimeUp: () => boolean) => boolean)[] = []
  /** When this turn's slice ends; null while no work has looked at the time. Once set, `endTurn` is scheduled. */
  let sliceEndMs: number | null = null

  return {
    run(work) {
      const made = work(isTimeUpOnArrival)
      if (made !== unfinished) return made
      if (waiting.length >= waitingMax) return 'full'
      return new Promise((resolve, reject) => {
        waiting.push(isTimeUp => {
          try {
            const madeNow = work(isTimeUp)
            if (madeNow === unfinished) return false
            resolve(madeNow)
          } catch (cause) {
            reject(cause)
          }
          return true
        })
      })
    },
  }

  function isTimeUpOnArrival(): boolean {
    return waiting.length > 0 || isTimeUp()
  }

  function isTimeUp(): boolean {
    const nowMs = monotonicNowMs()
    if (sliceEndMs === null) {
      sliceEndMs = nowMs + sliceMs
      inNextTurn(endTurn)
    }
    return nowMs >= sliceEndMs
  }

  function endTurn(): void {
    sliceEndMs = null
    // Not in here: requests that arrived in this turn may have used up its slice.
    if (waiting.length > 0) inNextTurn(goOn)
  }

  function goOn(): void {
    do {
      if (!waiting[0]!(isTimeUp)) return
      waiting.shift()
    } while (waiting.length > 0 && !isTimeUp())
  }
}
