// Bounds the memory of request bodies while they arrive and are processed, however many large bodies are sent at once.
// Before a body is refused because the budget is used up (503, after which its sender retries), slow bodies that hold much
// are ended to free budget for it.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { type BodyDone, BodyReader, emptyBody, type ReaderBudget, readAnnouncedLength } from './body-reader.ts'
import { DrainedBodies } from './drained-bodies.ts'
import { PieceCount } from './piece-count.ts'
import { ReadLimiter } from './read-limiter.ts'
import { SlowBodies } from './slow-bodies.ts'

export interface BodyLimits {
  /** Bytes that all bodies may hold. */
  readonly bytesMax: number
  /** The part of `bytesMax` for bodies that arrive in several chunks, so that slow senders cannot fill the rest. */
  readonly partsBytesMax: number
  /**
   * The part of `bytesMax` for bodies of more than `smallBytesMax`; the rest stays available for flag requests, which are
   * small.
   */
  readonly largeBytesMax: number
  readonly smallBytesMax: number
}

const KiB = 1024
const MiB = 1024 * KiB

export const bodyLimits: BodyLimits = {
  bytesMax: 256 * MiB,
  partsBytesMax: 224 * MiB,
  largeBytesMax: 192 * MiB,
  smallBytesMax: 64 * KiB,
}

/** The budget of a private API with its own port, which accepts writes regardless of what happens on the public port. */
export const adminBodyLimits: BodyLimits = {
  bytesMax: 64 * MiB,
  partsBytesMax: 56 * MiB,
  largeBytesMax: 48 * MiB,
  smallBytesMax: 64 * KiB,
}

/**
 * Why the reading of a body was ended. `stalled`: it arrived too slowly. `no_room`: other bodies needed its memory.
 * `tiny_pieces`: it came in countless tiny chunks.
 */
export type BodyEndReason = 'stalled' | 'no_room' | 'tiny_pieces'

export interface BodyBudgetOptions {
  readonly limits?: BodyLimits
  readonly slow?: SlowBodies
  readonly drained?: DrainedBodies
  /** Called for each body that was ended before it had arrived. */
  readonly onEnded?: (reason: BodyEndReason) => void
}

export class BodyBudget implements ReaderBudget {
  readonly #limits: BodyLimits
  readonly #readLimiter = new ReadLimiter()
  readonly #slow: SlowBodies
  readonly #drained: DrainedBodies
  readonly #onEnded: (reason: BodyEndReason) => void
  #heldBytes = 0

  constructor({ limits = bodyLimits, slow, drained, onEnded }: BodyBudgetOptions = {}) {
    this.#limits = limits
    this.#slow = slow ?? new SlowBodies()
    this.#drained = drained ?? new DrainedBodies()
    this.#onEnded = onEnded ?? (() => undefined)
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** How many bodies are still arriving. */
  get readingCount(): number {
    return this.#slow.count
  }

  /** How many bytes have arrived so far of the bodies that are still arriving. */
  get arrivedBytes(): number {
    return this.#slow.arrivedBytes
  }

  /**
   * Reads a whole body and charges its length until `giveBack`. After `busy` or `too_large` the rest may still be
   * arriving, and the caller must `drain` it.
   * @param bytesMax the route's limit, in bytes as received.
   */
  read(request: IncomingMessage, bytesMax: number, done: BodyDone): void {
    const announced = readAnnouncedLength(request)
    // An announced length reserves nothing, so a slow sender takes no more memory than it has sent.
    const isTooLarge = announced > bytesMax
    if (
      isTooLarge ||
      (announced > this.#limits.smallBytesMax && !this.#endSlowest(announced, this.#limits.largeBytesMax))
    ) {
      done(isTooLarge ? 'too_large' : 'busy', emptyBody)
      return
    }
    const isLarge = !(announced <= this.#limits.smallBytesMax)
    const reader = new BodyReader(this, request, announced, bytesMax, (fault, body) => {
      this.#slow.delete(reader)
      // The listeners are removed only after a failure: after a whole body only `close` can follow, and they disappear with
      // the request.
      if (fault !== null) stopListening()
      if (fault === 'stalled') this.#onEnded(fault)
      done(fault, body)
    })
    const pieces = isLarge ? new PieceCount() : null
    const onData = (chunk: Buffer) => {
      if (pieces !== null) {
        this.#readLimiter.noteRead(request, chunk.length)
        if (!pieces.add(chunk.length)) {
          this.#onEnded('tiny_pieces')
          reader.fail('broken')
          request.destroy()
          return
        }
      }
      reader.add(chunk)
    }
    const onEnd = () => reader.end()
    // An error of the request needs no separate listener: `close` follows it.
    const onClose = () => reader.fail('broken')
    const stopListening = () => {
      request.removeListener('data', onData)
      request.removeListener('end', onEnd)
      request.removeListener('close', onClose)
    }
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('close', onClose)
    this.#slow.add(reader)
  }

  /** Reads and drops the rest of an unwanted body. @param response a response of which nothing has been sent yet. */
  drain(request: IncomingMessage, response: ServerResponse): void {
    this.#drained.add(request, response)
  }

  /**
   * Frees the budget of a body that was read, once `work` has ended and the answer is complete: while the client reads the
   * answer, however slowly, the body is no longer needed.
   */
  giveBack(bytes: number, response: ServerResponse, work: Promise<void> | null): void {
    if (bytes === 0) return
    const give = () => this.give(bytes)
    const giveWhenAnswered = () => {
      if (response.writableEnded || response.closed) give()
      else response.once('close', give)
    }
    if (work === null) giveWhenAnswered()
    else work.then(giveWhenAnswered, giveWhenAnswered)
  }

  /** Called by `BodyReader`. */
  grow(bytes: number, reader: BodyReader): boolean {
    const { announced, arrivedBytes } = reader
    const { bytesMax, partsBytesMax, largeBytesMax, smallBytesMax } = this.#limits
    // A body without an announced length may be of any size, so it counts as large.
    const isLarge = !(announced <= smallBytesMax)
    const isWhole = arrivedBytes === 0 && bytes === announced
    if (!this.#endSlowest(bytes, isLarge ? largeBytesMax : isWhole ? bytesMax : partsBytesMax, reader)) return false
    this.#heldBytes += bytes
    return true
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes
  }

  /** Ends slow bodies, the slowest first, until this many more bytes fit; false when that does not free enough. */
  #endSlowest(bytes: number, limit: number, asker?: BodyReader): boolean {
    while (this.#heldBytes + bytes > limit) {
      const slowest = this.#slow.takeSlowest()
      if (slowest === null || slowest === asker) return false
      this.#onEnded('no_room')
      slowest.fail('busy')
    }
    return true
  }
}
