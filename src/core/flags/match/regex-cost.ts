// What a regular expression costs to compile, estimated without compiling it: counted repetitions multiply the program,
// and classes of Unicode take long to put together, so that 1,000 characters can hold an event loop for seconds.
// `regex-dialect.ts` feeds it what it meets in a pattern, and decides what is too much.

/** Units are about a microsecond: an instruction, or a character that is read. Measured, rounded up. Source: ours. */
export const regexUnits = {
  char: 1,
  /** `\p{…}`, `\d`: a table. Ones that are folded are looked through character by character. */
  table: 20,
  foldedTable: 75,
  /** A range of a class in a pattern that somewhere ignores case, unless both ends are ASCII. */
  foldedRange: 3_000,
} as const

/** Meets the pieces of one pattern from left to right. */
export class RegexCost {
  #readUnits = 0
  /** Instructions of the group that is open, and of its last piece, which a repetition would repeat. */
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

  /** The cost of the whole pattern, once all of it was met. */
  get units(): number {
    return this.#readUnits + this.instructions
  }

  /** The size of the compiled program: at worst each instruction is run for each character of a text. */
  get instructions(): number {
    return this.#groupSize + this.#outerSizes.reduce((sum, size) => sum + size, 0)
  }

  #add(size: number): void {
    this.#groupSize += size
    this.#pieceSize = size
  }
}
