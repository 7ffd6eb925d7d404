// Large bodies take turns. Node reads up to 2 MiB from each connection in one turn of the event loop, so two hundred
// connections with large bodies would hold it for seconds. All bodies together therefore have a bound for each turn, and one
// that would exceed it waits for the next turn, first come, first served. Small requests are read and answered in between.

import type { IncomingMessage } from 'node:http'

/** Some 5 ms of reading and copying. */
const turnBytesMax = 2 * 1024 * 1024
/** What a connection gives at once when its turn comes. */
const chunkBytes = 64 * 1024
const requestsOfTurn = turnBytesMax / chunkBytes

export class ReadTurns {
  #bytes = 0
  #isTurnEndAwaited = false
  #waiting: IncomingMessage[] = []

  /** A chunk of a body has come: stops its flow until the next turn when this one has had enough. */
  noteRead(request: IncomingMessage, bytes: number): void {
    this.#bytes += bytes
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
