// Opens a live view again whenever it breaks, with growing pauses, until there is no use in it. A view that never opened is
// not tried again: its address is more likely wrong than its instance away for a moment.

import type { LiveViewEnd } from './live-view.ts'

export interface KeepWatchingOptions {
  /** One view, from its request to its end. */
  readonly watch: (onReady: () => void) => Promise<LiveViewEnd>
  /** Once for each time that it breaks, and once when it is back: lines for a person. */
  readonly onLost: (why: string) => void
  readonly onBack: (afterMs: number) => void
  readonly sleep: (ms: number) => Promise<void>
  /** 0 ≤ random < 1: views that broke together come back at different times. */
  readonly random: () => number
  readonly monotonicNowMs: () => number
}

const pauseMs = { first: 500, soonMax: 5_000, max: 30_000 }
/** Most views break because somebody starts the instance again, and watches for it to be back. */
const soonMs = 60_000
/** A view that was open for so long begins again with the first pause, and with that minute. */
const steadyAfterMs = 10_000

/** @returns why it is of no use to go on, and whether there was a view at all. */
export async function keepWatching(options: KeepWatchingOptions): Promise<{ why: string; wasOpen: boolean }> {
  const { watch, monotonicNowMs } = options
  let wasOpen = false
  /** When the last byte came, if that is known. */
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
    if (end.isFinal || !wasOpen) return { why: end.why, wasOpen }
    const nowMs = monotonicNowMs()
    if (lostAtMs === null) {
      lostAtMs = nowMs - (end.silentMs ?? 0)
      options.onLost(end.why)
    }
    if (openedAtMs !== null && nowMs - openedAtMs >= steadyAfterMs) pause = null
    if (pause === null) brokeAtMs = nowMs
    const max: number = nowMs - brokeAtMs < soonMs ? pauseMs.soonMax : pauseMs.max
    pause = Math.min(max, pause === null ? pauseMs.first : pause * 2)
    await options.sleep(Math.max(pause * (0.5 + options.random() / 2), end.retryAfterMs ?? 0))
  }
}
