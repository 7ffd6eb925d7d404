// Decompresses a stream in small blocks, so that the data before damage is not lost: Node's own pipelines drop it when a
// decompression engine fails. Decompresses only as much as is taken.

import type { Duplex } from 'node:stream'
import { crc32, createInflateRaw, createZstdDecompress, type Zlib } from 'node:zlib'
import { type ByteReader, CompressionDamage, createTruncationError } from './byte-reader.ts'

/** An engine loses at most this much decompressed data before damage. */
const outputBytes = 16 * 1024
const inputBytes = 64 * 1024

const engines = {
  /** Including several frames. */
  zstd: () => createZstdDecompress({ chunkSize: outputBytes }),
  /** Deflate without a header, as within gzip and zip files. */
  deflate: () => createInflateRaw({ chunkSize: outputBytes }),
}

export type StreamCompression = keyof typeof engines

/**
 * Leaves the bytes after the compressed data in the reader. @throws CompressionDamage after yielding all data before the
 * damage.
 */
export async function* decompressBytes(packed: ByteReader, packing: StreamCompression): AsyncGenerator<Buffer> {
  const engine = engines[packing]() as Duplex & Zlib
  let change = Promise.withResolvers<void>()
  for (const event of ['readable', 'end', 'error']) engine.on(event, () => change.resolve())
  let last: Buffer = Buffer.alloc(0)
  let fedBytes = 0
  let takesInput = true
  /** How many of the last fed bytes the engine did not use. */
  const countLeftBytes = () => fedBytes - engine.bytesWritten
  try {
    for (;;) {
      const unpacked = engine.read() as Buffer | null
      if (unpacked !== null) yield unpacked
      else if (engine.errored !== null) throw toCompressionDamage(engine.errored, packing)
      else if (engine.readableEnded) break
      else if (!takesInput) {
        await change.promise
        change = Promise.withResolvers()
      } else {
        const next = await packed.chunk(inputBytes)
        takesInput = false
        if (next === null) engine.end()
        else {
          last = next
          fedBytes += next.length
          engine.write(next, () => {
            // An engine that leaves bytes unused has reached the end of the compressed data and is about to emit `end`.
            takesInput = countLeftBytes() === 0
            change.resolve()
          })
        }
      }
    }
    packed.unread(last.subarray(last.length - countLeftBytes()))
  } finally {
    engine.destroy()
  }
}

function toCompressionDamage(error: Error & { code?: string }, packing: StreamCompression): CompressionDamage {
  return error.code === 'Z_BUF_ERROR' || error.message === 'unexpected end of file'
    ? createTruncationError(`the ${packing} data`)
    : new CompressionDamage(`the ${packing} data is damaged: ${error.message}`)
}

const gzipMagic = Buffer.from('\x1f\x8b\x08', 'latin1')
const gzipData = 'the gzip data'
const hasCrc = 0x02
const hasExtra = 0x04
const hasName = 0x08
const hasComment = 0x10

/**
 * Decompresses a gzip file of one or more members, and ignores zero bytes after the last one. Headers and checksums are
 * read here, because Node's gzip engine discards the end of a member if its checksum is wrong or if other data follows.
 * Source: RFC 1952. @throws CompressionDamage after yielding all data before the damage.
 */
export async function* decompressGzipMembers(packed: ByteReader): AsyncGenerator<Buffer> {
  do {
    await skipHeader(packed)
    let sum = 0
    let sizeBytes = 0
    for await (const unpacked of decompressBytes(packed, 'deflate')) {
      sum = crc32(unpacked, sum)
      sizeBytes = (sizeBytes + unpacked.length) % 2 ** 32
      yield unpacked
    }
    const trailer = await packed.takeExactly(8, gzipData)
    if (trailer.readUInt32LE(0) !== sum || trailer.readUInt32LE(4) !== sizeBytes)
      throw new CompressionDamage('the gzip data is damaged: its checksum does not match')
  } while (await hasMoreAfterZeros(packed))
}

async function hasMoreAfterZeros(packed: ByteReader): Promise<boolean> {
  for (;;) {
    const [next] = await packed.peek(1)
    if (next !== 0) return next !== undefined
    await packed.take(1)
  }
}

async function skipHeader(packed: ByteReader): Promise<void> {
  const beginning = await packed.peek(gzipMagic.length)
  if (beginning.length === gzipMagic.length && !beginning.equals(gzipMagic))
    throw new CompressionDamage('data that is not gzip follows the gzip data')
  const flags = (await packed.takeExactly(10, gzipData))[3]!
  if (flags & hasExtra) await packed.takeExactly((await packed.takeExactly(2, gzipData)).readUInt16LE(), gzipData)
  for (const text of [hasName, hasComment])
    if (flags & text) while ((await packed.takeExactly(1, gzipData))[0] !== 0) {}
  if (flags & hasCrc) await packed.takeExactly(2, gzipData)
}
