// The bytes of a file that is too large to keep in memory: read on demand, page by page, into a buffer of fixed size. The
// operating system caches the rest, once for all processes. `mmdb-file.ts` interprets the bytes.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

const pageBits = 12
const pageBytes = 1 << pageBits
const offsetMask = pageBytes - 1
/** The size of the largest file that can be read, since positions are 32-bit numbers. */
const fileBytesMax = 2 ** 32 - 1
const notHeld = -1

export class FilePages {
  readonly byteCount: number
  readonly #descriptor: number
  /** Holds the pages. A part of this buffer that was never used takes no memory, so a few look-ups take little memory. */
  readonly #bytes: Buffer
  readonly #slotOfPage: Int32Array
  readonly #pageOfSlot: Int32Array
  /**
   * For the second-chance (clock) algorithm: a slot that was used since the hand last passed it is not replaced when the
   * hand passes.
   */
  readonly #wasUsed: Uint8Array
  #hand = 0

  /** @throws the system's error when the path cannot be opened or is not a file. */
  constructor(path: string, heldBytesMax: number) {
    this.#descriptor = openSync(path, 'r')
    const status = fstatSync(this.#descriptor)
    if (!status.isFile() || status.size > fileBytesMax) {
      closeSync(this.#descriptor)
      throw new Error(status.isFile() ? 'it is larger than 4 GiB' : 'it is not a file')
    }
    this.byteCount = status.size
    const pageCount = Math.ceil(status.size / pageBytes)
    const slotCount = Math.max(1, Math.min(pageCount, heldBytesMax >>> pageBits))
    this.#bytes = Buffer.allocUnsafeSlow(slotCount * pageBytes)
    this.#slotOfPage = new Int32Array(pageCount).fill(notHeld)
    this.#pageOfSlot = new Int32Array(slotCount).fill(notHeld)
    this.#wasUsed = new Uint8Array(slotCount)
  }

  close(): void {
    closeSync(this.#descriptor)
  }

  /** @throws RangeError if the position is beyond the end of the file. */
  byteAt(position: number): number {
    return this.#bytes[this.#placeOf(position, 1)]!
  }

  /** Big-endian. @param size bytes, 0 to 6. */
  uintAt(position: number, size: number): number {
    if ((position & offsetMask) + size > pageBytes) return this.copyOf(position, size).readUIntBE(0, size)
    if (size === 0) return 0
    const bytes = this.#bytes
    const place = this.#placeOf(position, size)
    if (size === 3) return (bytes[place]! << 16) | (bytes[place + 1]! << 8) | bytes[place + 2]!
    return bytes.readUIntBE(place, size)
  }

  textAt(position: number, size: number): string {
    if (size === 0) return ''
    if ((position & offsetMask) + size > pageBytes) return this.copyOf(position, size).toString('utf8')
    const place = this.#placeOf(position, size)
    return this.#bytes.toString('utf8', place, place + size)
  }

  /** Copies bytes, which may span pages. */
  copyOf(position: number, size: number): Buffer {
    if (position + size > this.byteCount) throw createRangeError()
    const copy = Buffer.allocUnsafe(size)
    for (let done = 0; done < size; ) {
      const place = this.#placeOf(position + done, 1)
      const inPage = Math.min(size - done, pageBytes - (place & offsetMask))
      this.#bytes.copy(copy, done, place, place + inPage)
      done += inPage
    }
    return copy
  }

  /** The position in the buffer of bytes that lie within one page; valid until the next call. @param size at least 1. */
  #placeOf(position: number, size: number): number {
    if (position + size > this.byteCount) throw createRangeError()
    const page = position >>> pageBits
    let slot = this.#slotOfPage[page]!
    if (slot === notHeld) slot = this.#load(page)
    else this.#wasUsed[slot] = 1
    return (slot << pageBits) | (position & offsetMask)
  }

  #load(page: number): number {
    const slot = this.#freeSlot()
    const before = this.#pageOfSlot[slot]!
    if (before !== notHeld) this.#slotOfPage[before] = notHeld
    this.#pageOfSlot[slot] = notHeld
    const from = page * pageBytes
    const size = Math.min(pageBytes, this.byteCount - from)
    for (let done = 0; done < size; ) {
      const count = readSync(this.#descriptor, this.#bytes, slot * pageBytes + done, size - done, from + done)
      if (count === 0) throw new Error('the file was truncated while open')
      done += count
    }
    this.#pageOfSlot[slot] = page
    this.#slotOfPage[page] = slot
    this.#wasUsed[slot] = 1
    return slot
  }

  #freeSlot(): number {
    const wasUsed = this.#wasUsed
    while (wasUsed[this.#hand] === 1) {
      wasUsed[this.#hand] = 0
      this.#hand = this.#hand + 1 === wasUsed.length ? 0 : this.#hand + 1
    }
    const slot = this.#hand
    this.#hand = slot + 1 === wasUsed.length ? 0 : slot + 1
    return slot
  }
}

function createRangeError(): RangeError {
  return new RangeError('a position beyond the end of the file')
}
