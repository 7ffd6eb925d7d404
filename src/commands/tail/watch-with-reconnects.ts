// Reopens a live view whenever it breaks, with growing pauses, until a retry is pointless. A view that never opened is not
// retried: a wrong address is more likely than an instance that is briefly down.

import type { LiveViewEnd } from './live-view.ts'

export interface ReconnectOptions {
  /** Runs one view, from its request to its end. */
  readonly watch: (onReady: () => void) => Promise<LiveViewEnd>
  /** Called once each time the view breaks; `onBack` is called once when the view is back. */
  readonly onLost: (reason: string) => void
  readonly onBack: (afterMs: number) => void
  readonly sleep: (ms: number) => Promise<void>
  /** 0 ≤ random < 1. Spreads the reconnections of views that broke together. */
  readonly random: () => number
  readonly monotonicNowMs: () => number
}

const pauseMs = { first: 500, soonMax: 5_000, max: 30_000 }
/** How long the pauses stay short: most views break because an operator restarts the instance and waits for it. */
const soonMs = 60_000
/** If a view was open for this long before it broke, the pauses start again with the shortest, and `soonMs` begins anew. */
const steadyAfterMs = 10_000

/** @returns why retrying is pointless, and whether a view was ever open. */
export async function watchWithReconnects(options: ReconnectOptions): Promise<{ reason: string; wasOpen: boolean }> {
  const { watch, monotonicNowMs } = options
  let wasOpen = false
  /** When the view was lost: at its last byte, if that is known. Null while it is not lost. */
  let lostAtMs: number | null = null
  let brokeAtMs = 0
  let pause: number | null = null
  for (;;) {
    let openedAtMs: number | null = null
    const end = await watch(() => {
      openedAtMs = monotonicNowMs()
      wasOpen = true
      if (lostAtMs !== null) options.onBack(openedAtMs - lostAtMs)
      lostAtMs = null
    })
    if (end.isFinal || !wasOpen) return { reason: end.reason, wasOpen }
    const nowMs = monotonicNowMs()
    if (lostAtMs === null) {
      lostAtMs = nowMs - (end.silentMs ?? 0)
      options.onLost(end.reason)
    }
    if (openedAtMs !== null && nowMs - openedAtMs >= steadyAfterMs) pause = null
    if (pause === null) brokeAtMs = nowMs
    const max: number = nowMs - brokeAtMs < soonMs ? pauseMs.soonMax : pauseMs.max
    pause = Math.min(max, pause === null ? pauseMs.first : pause * 2)
    await options.sleep(Math.max(pause * (0.5 + options.random() / 2), end.retryAfterMs ?? 0))
  }
}
