// The bodies of requests while they come in and are worked on: all of them together have a bound, so that however many
// large ones are sent at once, memory holds. What goes beyond it is answered 503, and its sender comes back.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { ReadTurns } from './read-turns.ts'

export interface BodyRoomLimits {
  /** Bytes that all bodies may hold. */
  readonly bytesMax: number
  /** Of these, the bytes that bodies of more than `smallBytesMax` may hold: flags are asked for with small ones. */
  readonly largeBytesMax: number
  readonly smallBytesMax: number
}

const KiB = 1024
const MiB = 1024 * KiB

export const bodyRoomLimits: BodyRoomLimits = {
  bytesMax: 256 * MiB,
  largeBytesMax: 192 * MiB,
  smallBytesMax: 64 * KiB,
}

/** `busy`: there is no room now. `too_large`: over the route's limit. `broken`: its sender is gone, or sent another length. */
export type BodyFault = 'busy' | 'too_large' | 'broken'

/** The first buffer of a body of more than this; it grows with what arrives, not with what was announced. */
const firstCapacity = 64 * KiB

export class BodyRoom {
  readonly #limits: BodyRoomLimits
  readonly #turns = new ReadTurns()
  #heldBytes = 0

  constructor(limits: BodyRoomLimits = bodyRoomLimits) {
    this.#limits = limits
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /**
   * Reads a whole body, which then holds its length of room until `giveBack`.
   * @param bytesMax the route's limit, of bytes as received.
   */
  read(request: IncomingMessage, bytesMax: number, done: (fault: BodyFault | null, body: Buffer) => void): void {
    const announced = announcedBytes(request)
    const fault = this.#faultBefore(announced, bytesMax)
    if (fault !== null) {
      this.#turns.drain(request)
      done(fault, emptyBody)
      return
    }
    const reader = new BodyReader(this, announced, bytesMax, (fault, body) => {
      request.removeListener('data', onData)
      request.removeListener('end', onEnd)
      request.removeListener('error', onGone)
      request.removeListener('close', onGone)
      if (fault !== null && fault !== 'broken') this.#turns.drain(request)
      done(fault, body)
    })
    const takesTurns = !(announced <= this.#limits.smallBytesMax)
    const onData = (chunk: Buffer) => {
      if (takesTurns) this.#turns.noteRead(request, chunk.length)
      reader.add(chunk)
    }
    const onEnd = () => reader.end()
    const onGone = () => reader.fail('broken')
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('error', onGone)
    request.on('close', onGone)
  }

  /** Once the answer is out, or nobody waits for it any more, and `work` is over, a body of so many bytes is not needed. */
  giveBack(bytes: number, response: ServerResponse, work: Promise<void> | null): void {
    if (bytes === 0) return
    const give = () => this.give(bytes)
    const isLongWork = work !== null && bytes > this.#limits.smallBytesMax
    const close = isLongWork ? () => void work.then(give, give) : give
    if (response.closed) close()
    else response.once('close', close)
  }

  /** @param bodyBytes of the body as far as it is known, which tells whether it is a large one. */
  take(bytes: number, bodyBytes: number): boolean {
    if (!this.#fits(bytes, bodyBytes)) return false
    this.#heldBytes += bytes
    return true
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes
  }

  /** An announced length is only looked at: who sends slowly holds no more than has come. */
  #faultBefore(announced: number, bytesMax: number): BodyFault | null {
    if (announced > bytesMax) return 'too_large'
    return announced > 0 && !this.#fits(announced, announced) ? 'busy' : null
  }

  #fits(bytes: number, bodyBytes: number): boolean {
    const { bytesMax, largeBytesMax, smallBytesMax } = this.#limits
    return this.#heldBytes + bytes <= (bodyBytes > smallBytesMax ? largeBytesMax : bytesMax)
  }
}

const emptyBody = Buffer.alloc(0)

/** NaN where the length is not told. */
export function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? Number.NaN)
}

/** One buffer that doubles: a list of chunks would take a hundred times their bytes when each is one byte long. */
class BodyReader {
  readonly #room: BodyRoom
  readonly #announced: number
  readonly #bytesMax: number
  #done: ((fault: BodyFault | null, body: Buffer) => void) | null
  #buffer = emptyBody
  #length = 0

  constructor(
    room: BodyRoom,
    announced: number,
    bytesMax: number,
    done: (fault: BodyFault | null, body: Buffer) => void,
  ) {
    this.#room = room
    this.#announced = announced
    this.#bytesMax = bytesMax
    this.#done = done
  }

  add(chunk: Buffer): void {
    const length = this.#length + chunk.length
    if (length > this.#bytesMax) this.fail('too_large')
    else if (length > this.#buffer.length && !this.#grow(length)) this.fail('busy')
    else {
      chunk.copy(this.#buffer, this.#length)
      this.#length = length
    }
  }

  end(): void {
    if (!Number.isNaN(this.#announced) && this.#length !== this.#announced) {
      this.fail('broken')
      return
    }
    const spare = this.#buffer.length - this.#length
    const body = spare === 0 ? this.#buffer : Buffer.from(this.#buffer.subarray(0, this.#length))
    this.#room.give(spare)
    this.#settle(null, body)
  }

  fail(fault: BodyFault): void {
    if (this.#done === null) return
    this.#room.give(this.#buffer.length)
    this.#buffer = emptyBody
    this.#settle(fault, emptyBody)
  }

  #settle(fault: BodyFault | null, body: Buffer): void {
    const done = this.#done
    this.#done = null
    done?.(fault, body)
  }

  #grow(length: number): boolean {
    const largest = Number.isNaN(this.#announced) ? this.#bytesMax : this.#announced
    const capacity = Math.min(Math.max(length, this.#buffer.length * 2, firstCapacity), Math.max(largest, length))
    // Of a body whose length is not told nobody knows that it is small.
    const bodyBytes = Number.isNaN(this.#announced) ? Number.POSITIVE_INFINITY : this.#announced
    if (!this.#room.take(capacity - this.#buffer.length, bodyBytes)) return false
    const grown = capacity > firstCapacity ? Buffer.allocUnsafeSlow(capacity) : Buffer.allocUnsafe(capacity)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
    return true
  }
}
