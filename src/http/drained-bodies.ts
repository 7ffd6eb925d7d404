// What still comes of bodies that were refused. A connection that is closed while its client sends is broken for it, and old
// SDKs, who then never see their answer, send the same again for ever: so the rest is read and let go. That must not become
// a way to keep the server busy: all together are read at a bounded rate, and each has a bound in bytes and in time.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export const drainLimits = {
  /** Bounds one body at three times the largest that any path takes. */
  bytesMax: 75 * 1024 * 1024,
  /** Below the time that Node gives a request, so that its answer stays the only one. */
  msMax: 30_000,
}
/** 64 MiB a second, in chunks of 64 KiB, so that what was refused takes nothing from others. */
const rounds = { everyMs: 10, requests: 10 }

const draining = new WeakSet<Socket>()

/** Whether the request of a connection was answered, and what comes now is only read to its end. */
export function isDraining(socket: Socket): boolean {
  return draining.has(socket)
}

export class DrainedBodies {
  readonly #limits: typeof drainLimits
  #waiting: IncomingMessage[] = []
  #isRoundAwaited = false

  constructor(limits = drainLimits) {
    this.#limits = limits
  }

  /**
   * Reads on, slowly, and lets go of what comes; cuts the connection at the bounds.
   * @param response not begun: Node would close the connection behind it when the client asks for that, in the midst of
   *   what it sends, so that is done here, at the body's end.
   */
  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    if (request.complete || socket.destroyed) return void request.resume()
    const isLast = !response.shouldKeepAlive
    if (isLast) response.setHeader('connection', 'keep-alive')
    let bytes = 0
    const cut = () => socket.destroy()
    const timer = setTimeout(cut, this.#limits.msMax).unref()
    const end = () => {
      clearTimeout(timer)
      draining.delete(socket)
    }
    draining.add(socket)
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > this.#limits.bytesMax) return cut()
      request.pause()
      this.#waiting.push(request)
      this.#awaitRound()
    })
    // A sender that goes away has nothing more to be told.
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
      for (const request of this.#waiting.splice(0, rounds.requests)) request.resume()
      if (this.#waiting.length > 0) this.#awaitRound()
    }, rounds.everyMs).unref()
  }
}
