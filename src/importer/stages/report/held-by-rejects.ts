// How many records the rejects hold. One of them may be a stretch of a file in which nothing could be read, and a count
// of rejects would call the loss of thousands of records a single one. Source: docs/wire/import.md §2.6.

/** A reject that is not so much longer than the records that could be read counts as one. */
const lengthsMin = 4

export class HeldByRejects {
  readonly #read = { count: 0, bytes: 0 }
  /** By the power of two of their length, since the length of records is only known in the end. */
  readonly #unreadable = new Map<number, { count: number; bytes: number }>()
  #otherRejects = 0

  addRead(bytes: number): void {
    this.#read.count++
    this.#read.bytes += bytes
  }

  /** @param bytes null for what is certainly one record, such as a line, or one that is rejected for what it says. */
  addReject(bytes: number | null): void {
    if (bytes === null) {
      this.#otherRejects++
      return
    }
    const magnitude = Math.floor(Math.log2(Math.max(1, bytes)))
    const sum = this.#unreadable.get(magnitude) ?? { count: 0, bytes: 0 }
    this.#unreadable.set(magnitude, { count: sum.count + 1, bytes: sum.bytes + bytes })
  }

  /** At least as many as there are rejects; judged by the length of the records that could be read. */
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
