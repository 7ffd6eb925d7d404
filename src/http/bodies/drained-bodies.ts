// Reads and drops the rest of refused bodies. If the connection were closed while the client is still sending, the client
// would see a broken connection instead of the answer, and old SDKs would retry forever. All these bodies share one limited
// rate, and each body is limited in bytes and time, so that they cannot keep the server busy.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PieceCount } from './piece-count.ts'

export const drainLimits = {
  /** The most bytes that are read of one body: three times the largest body that any path accepts. */
  bytesMax: 75 * 1024 * 1024,
  /** Shorter than Node's request timeout, so that Node does not send a second answer. */
  msMax: 30_000,
}
/** Reads 64 MiB a second, in chunks of up to 64 KiB, so that refused bodies do not slow down other requests. */
const rounds = { everyMs: 10, bytes: 640 * 1024, requests: 10 }

const draining = new WeakSet<Socket>()

/** Whether the connection's request was answered and the rest of its body is being dropped. */
export function isBodyDraining(socket: Socket): boolean {
  return draining.has(socket)
}

export class DrainedBodies {
  readonly #limits: typeof drainLimits
  #waiting: IncomingMessage[] = []
  #isRoundAwaited = false
  #bytesLeft = rounds.bytes

  constructor(limits = drainLimits) {
    this.#limits = limits
  }

  /**
   * Reads slowly and drops what arrives; destroys the connection at the limits.
   * @param response a response of which nothing has been sent yet. If the client asked to close the connection, Node would
   * close it right after the answer, while the client is still sending; this method closes it at the end of the body
   * instead.
   */
  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    if (request.complete || socket.destroyed) return void request.resume()
    const isLast = !response.shouldKeepAlive
    if (isLast) response.setHeader('connection', 'keep-alive')
    let bytes = 0
    const pieces = new PieceCount()
    const destroySocket = () => socket.destroy()
    const timer = setTimeout(destroySocket, this.#limits.msMax).unref()
    const end = () => {
      clearTimeout(timer)
      draining.delete(socket)
    }
    draining.add(socket)
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > this.#limits.bytesMax || !pieces.add(chunk.length)) return destroySocket()
      this.#awaitRound()
      this.#bytesLeft -= chunk.length
      if (this.#bytesLeft > 0) return
      request.pause()
      this.#waiting.push(request)
    })
    // Ignores the error: the client has disconnected, so there is nothing to answer.
    request.on('error', () => undefined)
    request.once('end', () => {
      end()
      if (!isLast) return
      if (response.writableFinished) socket.end()
      else response.once('finish', () => socket.end())
    })
    request.once('close', end)
    request.resume()
  }

  #awaitRound(): void {
    if (this.#isRoundAwaited) return
    this.#isRoundAwaited = true
    setTimeout(() => {
      this.#isRoundAwaited = false
      this.#bytesLeft = rounds.bytes
      // Any one of these bodies may use all bytes of this time slice.
      for (const request of this.#waiting.splice(0, rounds.requests)) request.resume()
      if (this.#waiting.length > 0) this.#awaitRound()
    }, rounds.everyMs).unref()
  }
}
