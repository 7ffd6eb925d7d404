// A chunked body may consist of pieces of one byte each. Node passes on each piece separately, in a few microseconds, but
// all pieces of one read in the same turn of the event loop, which pausing does not interrupt: 64 KiB of such pieces block
// it for 40 ms. No real client sends such bodies, so the connection is ended.

export const pieceLimits = {
  /** The number of pieces that may have any size, for clients that write text bit by bit. */
  freeCount: 4_096,
  /** The minimum average size of all further pieces. */
  averageBytesMin: 16,
}

/** Counts the chunks in which one body arrives. */
export class PieceCount {
  #count = 0
  #bytes = 0

  /** Counts a chunk; false when there are too many chunks for their total size. */
  add(bytes: number): boolean {
    this.#bytes += bytes
    return ++this.#count <= pieceLimits.freeCount + this.#bytes / pieceLimits.averageBytesMin
  }
}
