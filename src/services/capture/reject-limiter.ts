// How many refused events and requests a project may have stored per second; the rest is only counted, so that a broken
// client cannot fill the log with useless data.

export const rejectsPerSecondMax = 100
const trackedProjectCountMax = 10_000

export interface RejectLimiter {
  /** How many of `count` may be stored now. */
  take(projectId: number, count: number, nowMs: number): number
}

/** Counts per project in windows of one second. */
export function createRejectLimiter(): RejectLimiter {
  const windows = new Map<number, { second: number; taken: number }>()
  return {
    take(projectId, count, nowMs) {
      const second = Math.floor(nowMs / 1000)
      let window = windows.get(projectId)
      if (window === undefined || window.second !== second) {
        if (windows.size >= trackedProjectCountMax) windows.clear()
        window = { second, taken: 0 }
        windows.set(projectId, window)
      }
      const granted = Math.min(count, rejectsPerSecondMax - window.taken)
      window.taken += granted
      return granted
    },
  }
}
