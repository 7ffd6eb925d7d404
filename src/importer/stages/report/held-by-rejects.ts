// Estimates how many records the rejects contain. A reject may be an unreadable stretch of a file, so counting it as one
// would report the loss of thousands of records as a single one. Source: docs/wire/import.md §2.6.

/** A reject counts as one record unless it is this many times longer than the average readable record. */
const lengthsMin = 4

export class HeldByRejects {
  readonly #read = { count: 0, bytes: 0 }
  /** Grouped by the power of two of their length, since the average record length is known only at the end. */
  readonly #unreadable = new Map<number, { count: number; bytes: number }>()
  #otherRejects = 0

  addRead(bytes: number): void {
    this.#read.count++
    this.#read.bytes += bytes
  }

  /** @param bytes null for a reject that is certainly one record, such as a line, or a record rejected for its content. */
  addReject(bytes: number | null): void {
    if (bytes === null) {
      this.#otherRejects++
      return
    }
    const magnitude = Math.floor(Math.log2(Math.max(1, bytes)))
    const sum = this.#unreadable.get(magnitude) ?? { count: 0, bytes: 0 }
    this.#unreadable.set(magnitude, { count: sum.count + 1, bytes: sum.bytes + bytes })
  }

  /** At least the number of rejects; estimated from the average length of readable records. */
  records(): number {
    const meanBytes = Math.max(1, this.#read.bytes / Math.max(1, this.#read.count))
    let records = this.#otherRejects
    for (const [magnitude, { count, bytes }] of this.#unreadable) {
      const isLong = this.#read.count > 0 && 2 ** magnitude >= lengthsMin * meanBytes
      records += isLong ? Math.max(count, Math.round(bytes / meanBytes)) : count
    }
    return records
  }
}
