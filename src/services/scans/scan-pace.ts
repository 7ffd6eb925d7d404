// Shares slices of time among everything on a front that scans persons or groups one by one: however many scans are
// running, a turn of the event loop spends about one slice on them.

export interface ScanPace {
  /** Whether this turn's slice is used up. Called after a piece of work, never before, so that each scan progresses. */
  readonly isTimeUp: () => boolean
  /** Resolves in a later turn of the event loop with a new slice, first come, first served. */
  turn(): Promise<void>
}

export interface ScanPaceOptions {
  readonly monotonicNowMs: () => number
  readonly sliceMs?: number
  /** Calls back once the event loop has done its other work. Default: `setImmediate`. */
  readonly inNextTurn?: (callback: () => void) => void
}

const defaultSliceMs = 10

export function createScanPace(options: ScanPaceOptions): ScanPace {
  const { monotonicNowMs, sliceMs = defaultSliceMs, inNextTurn = setImmediate } = options
  const waiting: (() => void)[] = []
  let sliceEndMs = Number.NEGATIVE_INFINITY

  function begin(): void {
    sliceEndMs = monotonicNowMs() + sliceMs
    waiting.shift()!()
    if (waiting.length > 0) inNextTurn(begin)
  }

  return {
    isTimeUp: () => monotonicNowMs() >= sliceEndMs,
    turn: () =>
      new Promise(resolve => {
        if (waiting.push(resolve) === 1) inNextTurn(begin)
      }),
  }
}
