// Tells when everything is over that had begun before: what reads the state, writes to the event store and then commits may
// write rows of a state that has changed since.

export class UnderWay {
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

  /** Resolves when all that is running now has ended, however it ends. What begins later is not waited for. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#running])
  }
}
