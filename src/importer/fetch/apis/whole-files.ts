// Checks that a downloaded file is complete. A source that fails during an export ends the response with half a line, or
// with text such as `terminated early`.

import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { ascii } from '#core/ascii.ts'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import { ByteReader, PackingDamage } from '#importer/read/byte-reader.ts'
import { readZipEntries } from '#importer/read/zip-entries.ts'

const { lineFeed, carriageReturn } = ascii
/** No source exports longer lines. */
const lineBytesMax = 64 * 2 ** 20
/** How many unpacked bytes are read at once. */
const chunkSize = 64 * 1024

/**
 * @param path a gzip file of JSON lines.
 * @returns how many lines are not blank.
 * @throws BrokenAnswer when the gzip or its last line is incomplete.
 */
export async function checkGzipLines(path: string): Promise<number> {
  try {
    return await pipeline(createReadStream(path), createGunzip({ chunkSize }), countLines)
  } catch (cause) {
    throw toBrokenAnswer(cause)
  }
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
    for await (const { name, bytes } of readZipEntries(archive, { checksDirectory: true })) {
      place = `${name} in the zip: `
      const read = /\.jsonl?(\.gz)?$/.test(name) ? countLines : discardAll
      lineCount += await (name.endsWith('.gz') ? pipeline(bytes, createGunzip({ chunkSize }), read) : read(bytes))
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

/** @returns a BrokenAnswer for damage within a gzip; any other error, such as of the disk, unchanged. */
function toBrokenAnswer(cause: unknown): unknown {
  const { code = '', message } = cause as { code?: string; message?: string }
  return /^Z_/.test(code) ? new BrokenAnswer(`its gzip is cut short or damaged (${message})`) : cause
}

async function discardAll(bytes: AsyncIterable<Uint8Array>): Promise<number> {
  for await (const _ of bytes);
  return 0
}

/** @returns how many lines are not blank. @throws BrokenAnswer unless the last one is JSON. */
export async function countLines(bytes: AsyncIterable<Buffer>): Promise<number> {
  let lineCount = 0
  let last: Buffer[] = []
  let lastBytes = 0
  /** Whether the last line has ended, so that further bytes start another. */
  let hasEnded = true
  const keep = (part: Buffer) => {
    if (part.length === 0 || (part.length === 1 && part[0] === carriageReturn)) return
    if (hasEnded) {
      last = []
      lastBytes = 0
      hasEnded = false
      lineCount++
    }
    last.push(Buffer.from(part))
    lastBytes += part.length
  }
  for await (const chunk of bytes) {
    let from = 0
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, from)) {
      keep(chunk.subarray(from, at))
      hasEnded = true
      from = at + 1
    }
    keep(chunk.subarray(from))
    if (lastBytes > lineBytesMax) throw new BrokenAnswer('a line of it has no end')
  }
  try {
    if (lineCount > 0) JSON.parse(Buffer.concat(last).toString())
  } catch {
    throw new BrokenAnswer('its last line is not whole')
  }
  return lineCount
}
