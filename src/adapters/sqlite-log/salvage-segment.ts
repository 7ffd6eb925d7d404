// Salvages the frames of a segment that SQLite refuses. It scans the file page by page and finds each frame in an intact
// page, regardless of damage to the header and other pages. It also scans the side file, even beyond the point where
// SQLite's own recovery ends.
//
// Format: https://www.sqlite.org/fileformat2.html (1.6 B-tree pages, 2.1 record format, 4.1 WAL format). Rows of a
// segment are never changed or deleted, so a row found twice is the same row, and pages are never reused.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { type FrameRow, type ReadableSegment, unpackFrame } from './compressed-segment.ts'
import { frameRecordsMax, pageBytes, type SegmentName } from './segment-file.ts'

/** A frame and the place of its payload: the file, the page's position in it, and the payload's position in the page. */
interface Found extends Omit<FrameRow, 'body'> {
  readonly descriptor: number
  readonly pageAt: number
  readonly payloadAt: number
  readonly payloadBytes: number
  readonly bodyBytes: number
}

type Salts = [own: Buffer, first: Buffer, second: Buffer]

const leafPage = 0x0d
const walHeaderBytes = 32
const walFrameHeaderBytes = 24
const saltBytes = 8
/** The longest payload that is stored completely in the page of its row. */
const localBytesMax = pageBytes - 35
const localBytesMin = Math.floor(((pageBytes - 12) * 32) / 255) - 23
const overflowBytes = pageBytes - 4

/** A damaged segment with all frames that could be read; where a frame could not be read, there is a gap. */
export class SalvagedSegment implements ReadableSegment {
  readonly #firstOffset: number
  readonly #file: number
  readonly #wal: number | null
  /** Position in the side file of the newest version of each page, by page number. */
  readonly #walPages = new Map<number, number>()
  readonly #frames: readonly Found[]

  /**
   * Reads the whole file, which takes some tenths of a second for a full segment. @throws system errors, never for damage.
   */
  constructor({ path, firstOffset }: SegmentName) {
    this.#firstOffset = firstOffset
    this.#file = openSync(path, 'r')
    this.#wal = openIfExists(`${path}-wal`)
    const found = new Map<number, Found>()
    const take = (frame: Found): void => {
      if (frame.first_offset >= firstOffset) found.set(frame.first_offset, frame)
    }
    this.#readFile(take)
    if (this.#wal !== null) this.#readWal(this.#wal, take)
    this.#frames = removeOverlaps([...found.values()].sort((one, other) => one.first_offset - other.first_offset))
  }

  *framesFrom(offset: number): IterableIterator<FrameRow> {
    for (let index = this.#indexFrom(offset); index < this.#frames.length; index++) {
      const frame = this.#frames[index]!
      const { first_offset, record_count, appended_at_ms } = frame
      yield unpackFrame({ first_offset, record_count, appended_at_ms, body: this.#bodyOf(frame) })
    }
  }

  appendedAtMs(offset: number): number | null {
    return this.#frames[this.#indexFrom(offset)]?.appended_at_ms ?? null
  }

  endOffset(): number {
    const last = this.#frames.at(-1)
    return last === undefined ? this.#firstOffset : computeEndOffset(last)
  }

  newestAppendMs(): number | null {
    return this.#frames.at(-1)?.appended_at_ms ?? null
  }

  /** The index of the first frame that ends after `offset`. */
  #indexFrom(offset: number): number {
    let [low, high] = [0, this.#frames.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (computeEndOffset(this.#frames[middle]!) > offset) high = middle
      else low = middle + 1
    }
    return low
  }

  /** The body of a frame, as much of it as can be read; bytes of a damaged page are returned unchanged. */
  #bodyOf({ descriptor, pageAt, payloadAt, payloadBytes, bodyBytes }: Found): Buffer {
    const payload = Buffer.alloc(payloadBytes)
    let filled = countLocalBytes(payloadBytes)
    readSync(descriptor, payload, 0, filled, pageAt + payloadAt)
    if (filled < payloadBytes) {
      const page = Buffer.alloc(pageBytes)
      readSync(descriptor, page, 0, 4, pageAt + payloadAt + filled)
      while (filled < payloadBytes) {
        const number = page.readUInt32BE(0)
        if (number === 0 || !this.#readPage(number, page)) break
        filled += page.copy(payload, filled, 4, 4 + Math.min(overflowBytes, payloadBytes - filled))
      }
    }
    return payload.subarray(payloadBytes - bodyBytes)
  }

  close(): void {
    closeSync(this.#file)
    if (this.#wal !== null) closeSync(this.#wal)
  }

  #readFile(take: (frame: Found) => void): void {
    const page = Buffer.alloc(pageBytes)
    const { size } = fstatSync(this.#file)
    for (let at = 0; at + pageBytes <= size; at += pageBytes) {
      readSync(this.#file, page, 0, pageBytes, at)
      findFrames(page, this.#file, at, take)
    }
  }

  /** Skips frames left from before the side file was last restarted, which have other salts. */
  #readWal(wal: number, take: (frame: Found) => void): void {
    const { size } = fstatSync(wal)
    const step = walFrameHeaderBytes + pageBytes
    const frameHeader = Buffer.alloc(walFrameHeaderBytes)
    const readSaltsAt = (position: number) => {
      const salts = Buffer.alloc(saltBytes)
      readSync(wal, salts, 0, saltBytes, position)
      return salts
    }
    const [own, first, second] = [16, walHeaderBytes + 8, walHeaderBytes + step + 8].map(readSaltsAt) as Salts
    // If the header's salts differ from the first frame's, one is damaged: then the first or the second frame has the right
    // salts.
    const salts = own.equals(first) ? [own] : [first, second]
    const page = Buffer.alloc(pageBytes)
    for (let at = walHeaderBytes; at + step <= size; at += step) {
      readSync(wal, frameHeader, 0, walFrameHeaderBytes, at)
      if (!salts.some(each => frameHeader.subarray(8, 16).equals(each))) continue
      readSync(wal, page, 0, pageBytes, at + walFrameHeaderBytes)
      this.#walPages.set(frameHeader.readUInt32BE(0), at + walFrameHeaderBytes)
      findFrames(page, wal, at + walFrameHeaderBytes, take)
    }
  }

  /** @param number the page number, from 1. @returns whether the file has this page. */
  #readPage(number: number, page: Buffer): boolean {
    const inWal = this.#walPages.get(number)
    if (inWal !== undefined) return readSync(this.#wal!, page, 0, pageBytes, inWal) === pageBytes
    return readSync(this.#file, page, 0, pageBytes, (number - 1) * pageBytes) === pageBytes
  }
}

/** Reads the rows of `frames` in a page; rows of other tables have fewer columns. */
function findFrames(page: Buffer, descriptor: number, pageAt: number, take: (frame: Found) => void): void {
  if (page[0] !== leafPage) return
  const cellCount = Math.min(page.readUInt16BE(3), (pageBytes - 8) >> 1)
  for (let cell = 0; cell < cellCount; cell++) {
    const at = page.readUInt16BE(8 + 2 * cell)
    if (at < 8 + 2 * cellCount || at + 16 > pageBytes) continue
    const row = readRow(page, at)
    if (row !== null) take({ ...row, descriptor, pageAt })
  }
}

/** Reads a row of `frames`; null when the bytes at this place are not such a row. */
function readRow(page: Buffer, at: number): Omit<Found, 'descriptor' | 'pageAt'> | null {
  const cursor = { page, at }
  const payloadBytes = readVarint(cursor)
  const first_offset = readVarint(cursor)
  const payloadAt = cursor.at
  const headerBytes = readVarint(cursor)
  const types = [readVarint(cursor), readVarint(cursor), readVarint(cursor), readVarint(cursor)] as const
  const [key, count, time, body] = types
  const isRow = key === 0 && count in integerBytes && time in integerBytes && body >= 12 && body % 2 === 0
  if (!isRow || cursor.at !== payloadAt + headerBytes || !Number.isSafeInteger(first_offset)) return null
  const bodyBytes = (body - 12) / 2
  if (headerBytes + integerBytes[count]! + integerBytes[time]! + bodyBytes !== payloadBytes) return null
  if (payloadAt + countLocalBytes(payloadBytes) > pageBytes || payloadBytes > 2 ** 31) return null
  const record_count = readInteger(cursor, count)
  const appended_at_ms = readInteger(cursor, time)
  const isCount = record_count >= 1 && record_count <= frameRecordsMax
  return !isCount ? null : { first_offset, record_count, appended_at_ms, payloadAt, payloadBytes, bodyBytes }
}

/** How many bytes of a payload are stored in its row's page. */
function countLocalBytes(payloadBytes: number): number {
  if (payloadBytes <= localBytesMax) return payloadBytes
  const local = localBytesMin + ((payloadBytes - localBytesMin) % overflowBytes)
  return local <= localBytesMax ? local : localBytesMin
}

/** How many bytes an integer takes, by its serial type. Types 8 and 9 mean the numbers 0 and 1 and take no bytes. */
const integerBytes: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0 }

function readInteger(cursor: { readonly page: Buffer; at: number }, type: number): number {
  const bytes = integerBytes[type]!
  const { page, at } = cursor
  cursor.at += bytes
  if (bytes === 0) return type - 8
  return bytes === 8 ? Number(page.readBigInt64BE(at)) : page.readIntBE(at, bytes)
}

/** Reads values up to 2^53; a larger value becomes a value that fails every check. Reads nothing beyond the page. */
function readVarint(cursor: { readonly page: Buffer; at: number }): number {
  let value = 0
  for (let count = 0; count < 8; count++) {
    const byte = cursor.page[cursor.at++] ?? 0
    value = value * 128 + (byte & 0x7f)
    if (byte < 0x80) return value
  }
  return Number.POSITIVE_INFINITY
}

/**
 * A damaged page may appear to contain rows that nobody wrote. Such a row is dropped if its offsets overlap those of an
 * earlier row.
 */
function removeOverlaps(frames: readonly Found[]): readonly Found[] {
  let end = 0
  return frames.filter(frame => {
    if (frame.first_offset < end) return false
    end = computeEndOffset(frame)
    return true
  })
}

function computeEndOffset({ first_offset, record_count }: Found): number {
  return first_offset + record_count
}

function openIfExists(path: string): number | null {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
