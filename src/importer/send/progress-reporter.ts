// Reports progress to the service every 10 s. Never blocks sending.

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

  /** Call after each step of progress. */
  moved(): void {
    if (this.#reporting !== null || this.#nowMs() - this.#reportedMs < reportEveryMs) return
    this.#reportedMs = this.#nowMs()
    this.#reporting = this.#report()
      // Ignored: the next change of state is reported and awaited, and would fail too.
      .catch(() => undefined)
      .finally(() => {
        this.#reporting = null
      })
  }

  /** Resolves once no report is under way that could arrive after the next change of state. */
  async ended(): Promise<void> {
    await this.#reporting
  }
}
