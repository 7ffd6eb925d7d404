// Estimates what a regular expression costs to compile, without compiling it. Counted repetitions multiply the program, and
// Unicode classes take long to build, so that 1,000 characters can block the event loop for seconds. `regex-dialect.ts`
// passes the pieces of a pattern to `RegexCost` and decides what is too expensive.

/** A unit is about a microsecond: one instruction, or one character read. Measured, rounded up. Source: ours. */
export const regexUnits = {
  char: 1,
  /** `\p{…}`, `\d`: a table of characters. When case is ignored, it is folded character by character. */
  table: 20,
  foldedTable: 75,
  /** A range in a class, unless both ends are ASCII, in a pattern that ignores case somewhere. */
  foldedRange: 3_000,
} as const

/** Adds up the costs of a pattern's pieces from left to right. */
export class RegexCost {
  #readUnits = 0
  /** Instructions of the open group, and of its last piece, which a repetition would repeat. */
  #groupSize = 0
  #pieceSize = 0
  readonly #outerSizes: number[] = []

  /** Adds a piece that compiles to one instruction. */
  piece(units: number = regexUnits.char): void {
    this.#readUnits += units
    this.#add(1)
  }

  openGroup(): void {
    this.#outerSizes.push(this.#groupSize)
    this.#groupSize = 2 // where it begins and ends
  }

  closeGroup(): void {
    const size = this.#groupSize
    this.#groupSize = this.#outerSizes.pop() ?? 0
    this.#add(size)
  }

  /** `*`, `+`, `?`. */
  repeatAny(): void {
    this.#groupSize++
    this.#pieceSize++
  }

  /** `{least}`, `{least,}`, `{least,most}`. */
  repeatCounted(least: number, most: number): void {
    const size = this.#pieceSize * Math.max(least, most, 1) + Math.max(most - least, 1)
    this.#groupSize += size - this.#pieceSize
    this.#pieceSize = size
  }

  /** The cost of the whole pattern, once all pieces were added. */
  get units(): number {
    return this.#readUnits + this.instructions
  }

  /** The size of the compiled program. At worst, each instruction runs for each character of a text. */
  get instructions(): number {
    return this.#groupSize + this.#outerSizes.reduce((sum, size) => sum + size, 0)
  }

  #add(size: number): void {
    this.#groupSize += size
    this.#pieceSize = size
  }
}
