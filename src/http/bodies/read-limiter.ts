// Bounds the bytes of large bodies that are read in one turn of the event loop. Node reads up to 2 MiB from each connection
// per turn, so two hundred connections with large bodies would block it for seconds. At the limit, bodies wait for a later
// turn, first come, first served; small requests are handled in between.

import type { IncomingMessage } from 'node:http'

/** About 5 ms of reading and copying. */
const turnBytesMax = 2 * 1024 * 1024
/** The most that one read of a connection returns. */
const chunkBytes = 64 * 1024
/** A chunk counts as at least this many bytes, because passing on a small chunk takes as long as reading that many. */
const pieceBytesMin = 1024
const requestsOfTurn = turnBytesMax / chunkBytes

export class ReadLimiter {
  #bytes = 0
  #isTurnEndAwaited = false
  #waiting: IncomingMessage[] = []

  /**
   * Counts a chunk of a body; pauses the request until a later turn of the event loop when this turn's limit is reached.
   */
  noteRead(request: IncomingMessage, bytes: number): void {
    this.#bytes += Math.max(bytes, pieceBytesMin)
    if (this.#bytes > turnBytesMax) {
      request.pause()
      this.#waiting.push(request)
    }
    this.#awaitTurnEnd()
  }

  #awaitTurnEnd(): void {
    if (this.#isTurnEndAwaited) return
    this.#isTurnEndAwaited = true
    setImmediate(() => {
      this.#isTurnEndAwaited = false
      this.#bytes = 0
      for (const request of this.#waiting.splice(0, requestsOfTurn)) request.resume()
      if (this.#waiting.length > 0) this.#awaitTurnEnd()
    })
  }
}
