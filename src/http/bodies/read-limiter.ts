// Large bodies take turns. Node reads up to 2 MiB from each connection in one turn of the event loop, so two hundred
// connections with large bodies would hold it for seconds. Large bodies therefore share a bound for each turn. A body
// that arrives beyond it waits for a later turn, first come, first served. Small requests are handled in between.

import type { IncomingMessage } from 'node:http'

/** Takes some 5 ms of reading and copying. */
const turnBytesMax = 2 * 1024 * 1024
/** The bytes that one read of a connection brings. */
const chunkBytes = 64 * 1024
/** What a piece counts at least: handing over a small one takes as long as reading that much. */
const pieceBytesMin = 1024
const requestsOfTurn = turnBytesMax / chunkBytes

export class ReadLimiter {
  #bytes = 0
  #isTurnEndAwaited = false
  #waiting: IncomingMessage[] = []

  /** Notes a piece of a body; pauses the request until a later turn when this turn has had enough. */
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
