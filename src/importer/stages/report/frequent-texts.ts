// Finds texts that make up a large share of a stream, in constant memory (Misra–Gries algorithm). Every text with a share
// above 1 / size is found.

export class FrequentTexts {
  readonly #size: number
  readonly #counts = new Map<string, number>()
  #total = 0
  /** By how much each count may be too low. */
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

  /** @returns the texts whose share may exceed `share`, each with the lower bound of its share. */
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
