// The texts that make up a large share of many, in memory that does not grow with them: Misra and Gries' counters. Every
// text with a share above 1 / size is among the result.

export class FrequentTexts {
  readonly #size: number
  readonly #counts = new Map<string, number>()
  #total = 0
  /** What every counter may have lost. */
  #lost = 0

  constructor(size: number) {
    this.#size = size
  }

  add(text: string): void {
    this.#total++
    const count = this.#counts.get(text)
    if (count !== undefined) this.#counts.set(text, count + 1)
    else if (this.#counts.size < this.#size) this.#counts.set(text, 1)
    else this.#decrement()
  }

  /** @returns texts whose share is at least that, with the smallest share that they can have. */
  above(share: number): { readonly text: string; readonly share: number }[] {
    return [...this.#counts]
      .filter(([, count]) => count + this.#lost > share * this.#total)
      .map(([text, count]) => ({ text, share: count / this.#total }))
      .toSorted((a, b) => b.share - a.share)
  }

  #decrement(): void {
    this.#lost++
    for (const [text, count] of this.#counts) {
      if (count === 1) this.#counts.delete(text)
      else this.#counts.set(text, count - 1)
    }
  }
}
