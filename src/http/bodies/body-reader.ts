// Reads one body as it arrives. Charges the budget for the bytes that have arrived, never for the length that
// `Content-Length` announces. The first chunk is kept without a copy; a body in several chunks gets one buffer whose size
// doubles as needed, since a list of one-byte chunks would take a hundred times their bytes.

import type { IncomingMessage } from 'node:http'
import { releaseBytesMemory } from '#core/release-bytes.ts'
import { type IncomingBody, Pace } from './slow-bodies.ts'

/**
 * `busy`: no budget is left now. `too_large`: the body exceeds the route's limit. `stalled`: it arrives too slowly.
 * `broken`: its sender has disconnected.
 */
export type BodyFault = 'busy' | 'too_large' | 'stalled' | 'broken'

export type BodyDone = (fault: BodyFault | null, body: Buffer) => void

/** The memory budget from which body readers take bytes, and to which they return them. */
export interface ReaderBudget {
  /** Takes budget for this many more bytes of a body; false when not enough is left. */
  grow(bytes: number, reader: BodyReader): boolean
  give(bytes: number): void
}

export const emptyBody = Buffer.alloc(0)
/** The smallest buffer for a body in several chunks. */
const secondCapacity = 1024

/** The length that the headers announce; NaN when they announce none. */
export function readAnnouncedLength({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? Number.NaN)
}

export class BodyReader implements IncomingBody {
  readonly pace = new Pace()
  /** NaN when no length was announced. */
  readonly announced: number
  readonly #budget: ReaderBudget
  readonly #request: IncomingMessage
  readonly #bytesMax: number
  readonly #done: BodyDone
  #isOver = false
  /** Fills its whole ArrayBuffer, or is empty. */
  #buffer: Buffer = emptyBody
  #length = 0

  constructor(budget: ReaderBudget, request: IncomingMessage, announced: number, bytesMax: number, done: BodyDone) {
    this.#budget = budget
    this.#request = request
    this.announced = announced
    this.#bytesMax = bytesMax
    this.#done = done
  }

  get arrivedBytes(): number {
    return this.#length
  }

  get isPaused(): boolean {
    return this.#request.isPaused()
  }

  add(chunk: Buffer): void {
    if (this.#isOver) return
    const length = this.#length + chunk.length
    if (length > this.#bytesMax) this.fail('too_large')
    else if (length <= this.#buffer.length) {
      this.#take(chunk, this.#buffer)
      this.#length = length
    } else if (this.#grow(length, chunk)) this.#length = length
    else this.fail('busy')
  }

  end(): void {
    if (this.#isOver) return
    if (!Number.isNaN(this.announced) && this.#length !== this.announced) {
      this.fail('broken')
      return
    }
    const spare = this.#buffer.length - this.#length
    const body = spare === 0 ? this.#buffer : resizeBytes(this.#buffer, this.#length)
    this.#buffer = emptyBody
    this.#budget.give(spare)
    this.#settle(null, body)
  }

  fail(fault: BodyFault): void {
    if (this.#isOver) return
    this.#budget.give(this.#buffer.length)
    this.#buffer = emptyBody
    this.#settle(fault, emptyBody)
  }

  #settle(fault: BodyFault | null, body: Buffer): void {
    this.#isOver = true
    this.#done(fault, body)
  }

  /** Moves the body into a buffer with space for `chunk`. False when no budget is left. */
  #grow(length: number, chunk: Buffer): boolean {
    const isFirst = this.#length === 0
    const capacity = isFirst ? length : this.#capacityFor(length)
    if (!this.#budget.grow(capacity - this.#buffer.length, this)) return false
    // Node usually allocates each chunk separately. A slice of a larger buffer is copied: it would keep that whole buffer
    // alive.
    const isKept = isFirst && chunk.buffer.byteLength === length
    const grown = isKept ? chunk : isFirst ? Buffer.allocUnsafeSlow(capacity) : resizeBytes(this.#buffer, capacity)
    if (!isKept) this.#take(chunk, grown)
    this.#buffer = grown
    return true
  }

  /** Copies a chunk and frees it: the HTTP parser no longer uses a chunk that it has passed on. */
  #take(piece: Buffer, into: Buffer): void {
    piece.copy(into, this.#length)
    releaseBytesMemory(piece)
  }

  #capacityFor(length: number): number {
    const largest = Number.isNaN(this.announced) ? this.#bytesMax : this.announced
    return Math.min(Math.max(length, this.#buffer.length * 2, secondCapacity), Math.max(largest, length))
  }
}

/** Resizes a buffer and frees its old memory, as `releaseBytesMemory` does. */
function resizeBytes(bytes: Buffer, length: number): Buffer {
  return Buffer.from((bytes as Buffer<ArrayBuffer>).buffer.transfer(length))
}
