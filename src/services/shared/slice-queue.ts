// Shares slices of time among all evaluations of requests, or all scans, of a front: however many are under way, a turn
// of the event loop spends about one slice on them. Work that ends before it checks the time needs no slice: twenty
// flags do not wait for thousands.

import type { MaybePromise } from '#core/maybe-promise.ts'

export const unfinished: unique symbol = Symbol('unfinished')

/**
 * Continues the work where it last stopped. It works for about half a millisecond before each call of `isTimeUp`.
 * @returns `unfinished` when it stopped because the time was up.
 */
export type SlicedWork<T> = (isTimeUp: () => boolean) => T | typeof unfinished

export type SliceQueue = ReturnType<typeof createSliceQueue>

export interface SliceQueueOptions {
  readonly sliceMs: number
  /** How much work may wait. Default: no limit. */
  readonly waitingMax?: number
  readonly monotonicNowMs: () => number
  /** Calls back once the event loop has done its other work. Default: `setImmediate`. */
  readonly inNextTurn?: (callback: () => void) => void
}

export function createSliceQueue(options: SliceQueueOptions) {
  const { sliceMs, waitingMax = Number.POSITIVE_INFINITY, monotonicNowMs, inNextTurn = setImmediate } = options
  /** In order of arrival; the first is running. Each returns whether it is done. */
  const waiting: ((isTimeUp: () => boolean) => boolean)[] = []
  /** When this turn's slice ends; null until work checks the time. While it is set, `endTurn` is scheduled. */
  let sliceEndMs: number | null = null

  return {
    /**
     * Begins the work at once. When other work is waiting, or this turn's slice is used up, the work continues after the
     * work that came before it: first come, first served. Errors of the work go to its caller.
     * @returns `full` when the work would have to wait and too many already do.
     */
    run<T>(work: SlicedWork<T>): MaybePromise<T> | 'full' {
      const made = work(isTimeUpOnArrival)
      if (made !== unfinished) return made
      if (waiting.length >= waitingMax) return 'full'
      return new Promise<T>((resolve, reject) => {
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
    // Resume in the next turn: requests that arrived in this one may have used up its slice.
    if (waiting.length > 0) inNextTurn(resumeWaiting)
  }

  function resumeWaiting(): void {
    do {
      if (!waiting[0]!(isTimeUp)) return
      waiting.shift()
    } while (waiting.length > 0 && !isTimeUp())
  }
}
