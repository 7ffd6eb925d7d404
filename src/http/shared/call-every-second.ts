// A tick once a second, for code that watches the pace of clients. It does not keep the process alive.

/** Calls its argument at each tick until the function that it returned is called. Tests pass their own implementation. */
export type StartTicks = (tick: () => void) => () => void

export function callEverySecond(tick: () => void): () => void {
  const timer = setInterval(tick, 1_000).unref()
  return () => clearInterval(timer)
}
