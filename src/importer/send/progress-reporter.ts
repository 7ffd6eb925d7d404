// Tells the service every few seconds how far sending is, for who looks at it there. Sending does not wait for it.

const reportEveryMs = 10_000

export class ProgressReporter {
  readonly #report: () => Promise<void>
  readonly #nowMs: () => number
  #reporting: Promise<void> | null = null
  #reportedMs: number

  constructor(report: () => Promise<void>, nowMs: () => number) {
    this.#report = report
    this.#nowMs = nowMs
    this.#reportedMs = nowMs()
  }

  /** Something more is sent. */
  moved(): void {
    if (this.#reporting !== null || this.#nowMs() - this.#reportedMs < reportEveryMs) return
    this.#reportedMs = this.#nowMs()
    this.#reporting = this.#report()
      // Whatever is wrong meets the next state too, which is told and waited for.
      .catch(() => undefined)
      .finally(() => {
        this.#reporting = null
      })
  }

  /** Nothing is told any more that could come after the next state. */
  async ended(): Promise<void> {
    await this.#reporting
  }
}
