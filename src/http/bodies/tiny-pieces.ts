// A body in chunks may be cut into pieces of a byte each. Node hands over every piece by itself, which takes a few
// microseconds, and all that came in one read of the connection in one turn of the event loop, which a pause does not
// interrupt: 64 KiB of them hold it for 40 ms. No client sends such bodies, so the connection that brings one is ended.

export const pieceLimits = {
  /** How many pieces a body may have whatever their size, as where texts are written piece by piece. */
  freeCount: 4_096,
  /** The least that all further pieces have to bring on average. */
  averageBytesMin: 16,
}

/** Counts the pieces of one body. */
export class PieceCount {
  #count = 0
  #bytes = 0

  /** Notes a piece; false when there are too many for what they bring. */
  add(bytes: number): boolean {
    this.#bytes += bytes
    return ++this.#count <= pieceLimits.freeCount + this.#bytes / pieceLimits.averageBytesMin
  }
}
