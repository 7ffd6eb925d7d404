// Tells the service every few seconds how far sending is, for who looks at it there. Sending does not wait for it.

const tellEveryMs = 10_000

export class ToldProgress {
  readonly #tell: () => Promise<void>
  readonly #nowMs: () => number
  #telling: Promise<void> | null = null
  #toldMs: number

  constructor(tell: () => Promise<void>, nowMs: () => number) {
    this.#tell = tell
    this.#nowMs = nowMs
    this.#toldMs = nowMs()
  }

  /** Something more is sent. */
  moved(): void {
    if (this.#telling !== null || this.#nowMs() - this.#toldMs < tellEveryMs) return
    this.#toldMs = this.#nowMs()
    this.#telling = this.#tell()
      // Whatever is wrong meets the next state too, which is told and waited for.
      .catch(() => undefined)
      .finally(() => {
        this.#telling = null
      })
  }

  /** Nothing is told any more that could come after the next state. */
  async ended(): Promise<void> {
    await this.#telling
  }
}
