// A chunked body may be cut into pieces of one byte each. Node passes on each piece separately, in a few microseconds,
// and all pieces of one read in one turn of the event loop, which pausing does not interrupt: 64 KiB of them block it
// for 40 ms. No real client sends such bodies, so the connection is ended.

export const pieceLimits = {
  /** Pieces allowed whatever their size, for clients that write text piece by piece. */
  freeCount: 4_096,
  /** The least average size of all further pieces. */
  averageBytesMin: 16,
}

/** Counts the pieces of one body. */
export class PieceCount {
  #count = 0
  #bytes = 0

  /** Counts a piece; false when there are too many for their size. */
  add(bytes: number): boolean {
    this.#bytes += bytes
    return ++this.#count <= pieceLimits.freeCount + this.#bytes / pieceLimits.averageBytesMin
  }
}
