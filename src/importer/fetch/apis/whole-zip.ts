// Checks that a zip of `.json.gz` files is complete: it has its directory, and every entry unpacks to the size and the
// checksum in the directory. Source: APPNOTE of the zip format, 4.3; ZIP64 for exports beyond 4 GiB.

import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { PassThrough, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32, createGunzip, createInflateRaw } from 'node:zlib'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import { LastLine, toBrokenAnswer } from './whole-lines.ts'

interface ZipEntry {
  readonly name: string
  readonly method: number
  readonly crc: number
  readonly packedBytes: number
  readonly bytes: number
  readonly headerAt: number
}

const marks = { entry: 0x04034b50, directory: 0x02014b50, end: 0x06054b50, end64: 0x06064b50, locator64: 0x07064b50 }
const directoryBytesMax = 256 * 2 ** 20
const in64 = 0xffffffff

export interface WholeZip {
  readonly entryCount: number
  /** The lines of all entries together. */
  readonly lineCount: number
}

/** @throws BrokenAnswer when anything in it is missing or damaged. */
export async function checkZip(path: string): Promise<WholeZip> {
  const file = await open(path)
  try {
    const entries = await readDirectory(file)
    let lineCount = 0
    for (const entry of entries) if (!entry.name.endsWith('/')) lineCount += await checkEntry(file, path, entry)
    return { entryCount: entries.length, lineCount }
  } catch (cause) {
    // A damaged offset points outside the file.
    throw cause instanceof RangeError ? new BrokenAnswer('the directory of the zip is damaged') : cause
  } finally {
    await file.close()
  }
}

async function readDirectory(file: FileHandle): Promise<ZipEntry[]> {
  const { size } = await file.stat()
  const tail = await readAt(file, Math.max(0, size - 65_557), Math.min(size, 65_557))
  const endAt = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (endAt < 0 || tail.length - endAt < 22) throw new BrokenAnswer('the zip has no directory: it was cut short')
  let [count, bytes, from] = [
    tail.readUInt16LE(endAt + 10),
    tail.readUInt32LE(endAt + 12),
    tail.readUInt32LE(endAt + 16),
  ]
  if (endAt >= 20 && tail.readUInt32LE(endAt - 20) === marks.locator64) {
    const end64 = await readAt(file, Number(tail.readBigUInt64LE(endAt - 12)), 56)
    if (end64.readUInt32LE(0) !== marks.end64) throw new BrokenAnswer('the directory of the zip is damaged')
    ;[count, bytes, from] = [32, 40, 48].map(at => Number(end64.readBigUInt64LE(at))) as [number, number, number]
  }
  if (bytes > directoryBytesMax) throw new BrokenAnswer('the directory of the zip is damaged')
  return parseDirectory(await readAt(file, from, bytes), count)
}

function parseDirectory(directory: Buffer, count: number): ZipEntry[] {
  const entries: ZipEntry[] = []
  for (let at = 0; entries.length < count; ) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== marks.directory)
      throw new BrokenAnswer('the directory of the zip is damaged')
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map(offset => directory.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ]
    const nameEnd = at + 46 + nameBytes
    const [bytes, packedBytes, headerAt] = readSizes(directory, at, directory.subarray(nameEnd, nameEnd + extraBytes))
    entries.push({
      name: directory.toString('utf8', at + 46, nameEnd),
      method: directory.readUInt16LE(at + 10),
      crc: directory.readUInt32LE(at + 16),
      ...{ bytes, packedBytes, headerAt },
    })
    at = nameEnd + extraBytes + commentBytes
  }
  return entries
}

/** Unpacked bytes, packed bytes and offset. Those that do not fit 32 bits are in extra field 1, in this order. */
function readSizes(directory: Buffer, at: number, extra: Buffer): [number, number, number] {
  const sizes = [24, 20, 42].map(offset => directory.readUInt32LE(at + offset)) as [number, number, number]
  for (let from = 0; from + 4 <= extra.length; from += 4 + extra.readUInt16LE(from + 2)) {
    if (extra.readUInt16LE(from) !== 1) continue
    let next = from + 4
    return sizes.map(size => {
      if (size !== in64 || next + 8 > extra.length) return size
      next += 8
      return Number(extra.readBigUInt64LE(next - 8))
    }) as [number, number, number]
  }
  return sizes
}

/** @returns the number of lines. */
async function checkEntry(file: FileHandle, path: string, entry: ZipEntry): Promise<number> {
  const header = await readAt(file, entry.headerAt, 30)
  if (header.readUInt32LE(0) !== marks.entry) throw new BrokenAnswer(`${entry.name} in the zip is damaged`)
  const start = entry.headerAt + 30 + header.readUInt16LE(26) + header.readUInt16LE(28)
  if (entry.method !== 0 && entry.method !== 8)
    throw new BrokenAnswer(`${entry.name} in the zip is packed in an unknown way (${entry.method})`)
  const sum = new Checksum()
  const lines = new LastLine()
  const isGzip = entry.name.endsWith('.gz')
  const isLines = /\.jsonl?(\.gz)?$/.test(entry.name)
  try {
    // `end` is inclusive, so a stream over no bytes would read one.
    if (entry.packedBytes > 0)
      await pipeline(
        createReadStream(path, { start, end: start + entry.packedBytes - 1 }),
        entry.method === 8 ? createInflateRaw() : new PassThrough(),
        sum,
        isGzip ? createGunzip() : new PassThrough(),
        isLines ? lines : createDiscardStream(),
      )
  } catch (cause) {
    const fault = toBrokenAnswer(cause)
    throw fault instanceof BrokenAnswer ? new BrokenAnswer(`${entry.name} in the zip: ${fault.message}`) : fault
  }
  if (sum.bytes !== entry.bytes || sum.value !== entry.crc)
    throw new BrokenAnswer(`${entry.name} in the zip is damaged`)
  return lines.checked().lineCount
}

class Checksum extends Transform {
  value = 0
  bytes = 0
  override _transform(chunk: Buffer, _encoding: string, done: (error: null, chunk: Buffer) => void): void {
    this.value = crc32(chunk, this.value)
    this.bytes += chunk.length
    done(null, chunk)
  }
}

function createDiscardStream(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done() })
}

/** @throws BrokenAnswer when the file ends before that. */
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw new BrokenAnswer('the zip was cut short')
  return buffer
}
