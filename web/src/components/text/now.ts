import { useSyncExternalStore } from 'react'

/** How long a shown time such as "4 min ago" may be old. */
const tickMs = 10_000

let tickCount = 0
let timer: ReturnType<typeof setInterval> | undefined
const listeners = new Set<() => void>()

/** In ms since the epoch. All components that use it are rendered together at every tick. */
export function useNow(): number {
  useSyncExternalStore(subscribe, () => tickCount)
  // Not the time of the tick: what has happened since would be in the future.
  return Date.now()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(tick, tickMs)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

function tick(): void {
  tickCount++
  for (const listener of listeners) listener()
}
