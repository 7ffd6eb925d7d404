// Checks that a downloaded file is complete. A source that fails during an export ends the response with half a line, or
// with text such as `terminated early`.

import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { ascii } from '#core/ascii.ts'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import { ByteReader, CompressionDamage } from '#importer/read/byte-reader.ts'
import { readZipEntries } from '#importer/read/zip-entries.ts'

const { lineFeed, carriageReturn } = ascii
/** No source exports longer lines. */
const lineBytesMax = 64 * 2 ** 20
/** How many unpacked bytes are read at once. */
const chunkSize = 64 * 1024

/**
 * @param path a gzip file of JSON lines.
 * @returns whether it has any line that is not blank.
 * @throws BrokenAnswer when the gzip or its last line is incomplete.
 */
export async function checkGzipLines(path: string): Promise<boolean> {
  try {
    return await pipeline(createReadStream(path), createGunzip({ chunkSize }), checkJsonLines)
  } catch (cause) {
    throw toBrokenAnswer(cause)
  }
}

/**
 * @param path a zip of `.json.gz` files.
 * @throws BrokenAnswer unless every entry unpacks to its checksum and the directory behind the entries lists all of them.
 */
export async function checkZip(path: string): Promise<void> {
  const archive = new ByteReader(createReadStream(path))
  let place = ''
  try {
    for await (const { name, bytes } of readZipEntries(archive, { checksDirectory: true })) {
      place = `${name} in the zip: `
      const read = /\.jsonl?(\.gz)?$/.test(name) ? checkJsonLines : discardAll
      await (name.endsWith('.gz') ? pipeline(bytes, createGunzip({ chunkSize }), read) : read(bytes))
      place = ''
    }
  } catch (cause) {
    const fault = toBrokenAnswer(cause)
    if (!(fault instanceof CompressionDamage || fault instanceof BrokenAnswer)) throw fault
    throw new BrokenAnswer(`${place}${fault.message}`)
  } finally {
    await archive.close()
  }
}

/** @returns a BrokenAnswer for damage within a gzip; any other error, such as a disk error, unchanged. */
function toBrokenAnswer(cause: unknown): unknown {
  const { code = '', message } = cause as { code?: string; message?: string }
  return /^Z_/.test(code) ? new BrokenAnswer(`its gzip is cut short or damaged (${message})`) : cause
}

async function discardAll(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of bytes);
}

/** @returns whether any line is not blank. @throws BrokenAnswer unless the last line is JSON. */
export async function checkJsonLines(bytes: AsyncIterable<Buffer>): Promise<boolean> {
  let last: Buffer[] = []
  let lastBytes = 0
  /** Whether the last line has ended, so that further bytes start a new line. */
  let hasEnded = true
  for await (const chunk of bytes) {
    const to = chunk.findLastIndex(byte => byte !== lineFeed && byte !== carriageReturn) + 1
    if (to > 0) {
      const from = chunk.lastIndexOf(lineFeed, to - 1) + 1
      if (hasEnded || from > 0) [last, lastBytes] = [[], 0]
      last.push(Buffer.from(chunk.subarray(from, to)))
      lastBytes += to - from
      hasEnded = false
    }
    hasEnded ||= chunk.includes(lineFeed, to)
    if (lastBytes > lineBytesMax) throw new BrokenAnswer('a line of it has no end')
  }
  try {
    if (last.length > 0) JSON.parse(Buffer.concat(last).toString())
  } catch {
    throw new BrokenAnswer('its last line is not whole')
  }
  return last.length > 0
}
