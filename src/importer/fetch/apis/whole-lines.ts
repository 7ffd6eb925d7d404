// Checks that a file of JSON lines is complete: its gzip has its end, and its last line is JSON. A source that fails during
// an export ends the response with half a line, or with text such as `terminated early`.

import { createReadStream } from 'node:fs'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d
/** No source exports longer lines. */
const lineBytesMax = 64 * 2 ** 20

export interface WholeLines {
  /** Lines that are not blank. */
  readonly lineCount: number
}

/** @param path a gzip file of JSON lines. @throws BrokenAnswer when it is incomplete. */
export async function checkGzipLines(path: string): Promise<WholeLines> {
  const lines = new LastLine()
  try {
    await pipeline(createReadStream(path), createGunzip(), lines)
  } catch (cause) {
    throw toBrokenAnswer(cause)
  }
  return lines.checked()
}

/** @returns a BrokenAnswer for damage within a gzip; any other error, such as of the disk, unchanged. */
export function toBrokenAnswer(cause: unknown): unknown {
  const { code = '', message } = cause as { code?: string; message?: string }
  return /^Z_/.test(code) ? new BrokenAnswer(`its gzip is cut short or damaged (${message})`) : cause
}

/** Counts the lines that are not blank, and keeps the last one. */
export class LastLine extends Writable {
  #lineCount = 0
  #last: Buffer[] = []
  #lastBytes = 0
  /** Whether the kept line has ended, so that further bytes start another. */
  #hasEnded = false

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    let from = 0
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      this.#keep(chunk.subarray(from, at))
      this.#hasEnded = true
      from = at + 1
    }
    this.#keep(chunk.subarray(from))
    done(this.#lastBytes > lineBytesMax ? new BrokenAnswer('a line of it has no end') : undefined)
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0 || (bytes.length === 1 && bytes[0] === carriageReturn)) return
    if (this.#hasEnded || this.#lineCount === 0) {
      this.#last = []
      this.#lastBytes = 0
      this.#hasEnded = false
      this.#lineCount++
    }
    this.#last.push(Buffer.from(bytes))
    this.#lastBytes += bytes.length
  }

  /** @throws BrokenAnswer */
  checked(): WholeLines {
    if (this.#lineCount === 0) return { lineCount: 0 }
    try {
      JSON.parse(Buffer.concat(this.#last).toString())
    } catch {
      throw new BrokenAnswer('its last line is not whole')
    }
    return { lineCount: this.#lineCount }
  }
}
