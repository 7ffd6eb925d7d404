// Checks that a downloaded file is complete. A source that fails during an export ends the response with half a line, or
// with text such as `terminated early`.

import { createReadStream } from 'node:fs'
import { PassThrough, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { ascii } from '#core/ascii.ts'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import { ByteReader, PackingDamage } from '#importer/read/byte-reader.ts'
import { readZipEntries, type ZipEntry } from '#importer/read/zip-entries.ts'

const { lineFeed, carriageReturn } = ascii
/** No source exports longer lines. */
const lineBytesMax = 64 * 2 ** 20

/**
 * @param path a gzip file of JSON lines.
 * @returns how many lines are not blank.
 * @throws BrokenAnswer when the gzip or its last line is incomplete.
 */
export async function checkGzipLines(path: string): Promise<number> {
  const lines = new LastLine()
  try {
    await pipeline(createReadStream(path), createGunzip(), lines)
  } catch (cause) {
    throw toBrokenAnswer(cause)
  }
  return lines.checkedCount()
}

/**
 * @param path a zip of `.json.gz` files.
 * @returns how many lines of its files are not blank.
 * @throws BrokenAnswer unless every entry unpacks to its checksum and the directory behind the entries lists all of them.
 */
export async function checkZip(path: string): Promise<number> {
  const archive = new ByteReader(createReadStream(path))
  let lineCount = 0
  let place = ''
  try {
    for await (const entry of readZipEntries(archive, { checksDirectory: true })) {
      place = `${entry.name} in the zip: `
      lineCount += await countLines(entry)
      place = ''
    }
    return lineCount
  } catch (cause) {
    const fault = toBrokenAnswer(cause)
    if (!(fault instanceof PackingDamage || fault instanceof BrokenAnswer)) throw fault
    throw new BrokenAnswer(`${place}${fault.message}`)
  } finally {
    await archive.close()
  }
}

async function countLines({ name, bytes }: ZipEntry): Promise<number> {
  const lines = new LastLine()
  const discarded = new Writable({ write: (_chunk, _encoding, done) => done() })
  const unpacker = name.endsWith('.gz') ? createGunzip() : new PassThrough()
  await pipeline(bytes, unpacker, /\.jsonl?(\.gz)?$/.test(name) ? lines : discarded)
  return lines.checkedCount()
}

/** @returns a BrokenAnswer for damage within a gzip; any other error, such as of the disk, unchanged. */
function toBrokenAnswer(cause: unknown): unknown {
  const { code = '', message } = cause as { code?: string; message?: string }
  return /^Z_/.test(code) ? new BrokenAnswer(`its gzip is cut short or damaged (${message})`) : cause
}

/** Counts the lines that are not blank, and keeps the last one. */
export class LastLine extends Writable {
  #lineCount = 0
  #last: Buffer[] = []
  #lastBytes = 0
  /** Whether the kept line has ended, so that further bytes start another. */
  #hasEnded = true

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
    if (this.#hasEnded) {
      this.#last = []
      this.#lastBytes = 0
      this.#hasEnded = false
      this.#lineCount++
    }
    this.#last.push(Buffer.from(bytes))
    this.#lastBytes += bytes.length
  }

  /** @returns how many lines there are. @throws BrokenAnswer unless the last one is JSON. */
  checkedCount(): number {
    if (this.#lineCount === 0) return 0
    try {
      JSON.parse(Buffer.concat(this.#last).toString())
    } catch {
      throw new BrokenAnswer('its last line is not whole')
    }
    return this.#lineCount
  }
}
