// Waits for the calls that have already begun: a call that reads the state, writes to the event store and then commits may
// write rows that come from an outdated state.

export class RunningCalls {
  readonly #running = new Set<Promise<unknown>>()

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const running = work()
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** Resolves when all calls that are running now have ended, successfully or not. Later calls are not awaited. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#running])
  }
}
