// Decompresses a gzip file of one or more members. Headers and checksums are read here, because Node's gzip engine discards
// the end of a member if its checksum is wrong or if other data follows. Source: RFC 1952.

import { crc32 } from 'node:zlib'
import type { ByteReader } from './byte-reader.ts'
import { decompress, PackingDamage } from './decompress.ts'

const magic = Buffer.from('\x1f\x8b\x08', 'latin1')
const hasCrc = 0x02
const hasExtra = 0x04
const hasName = 0x08
const hasComment = 0x10

/** Ignores zero bytes after the last member. @throws PackingDamage after yielding all data before the damage. */
export async function* decompressGzipMembers(packed: ByteReader): AsyncGenerator<Buffer> {
  do {
    await skipHeader(packed)
    let sum = 0
    let sizeBytes = 0
    for await (const unpacked of decompress(packed, 'deflate')) {
      sum = crc32(unpacked, sum)
      sizeBytes = (sizeBytes + unpacked.length) % 2 ** 32
      yield unpacked
    }
    const trailer = await readExactly(packed, 8)
    if (trailer.readUInt32LE(0) !== sum || trailer.readUInt32LE(4) !== sizeBytes)
      throw new PackingDamage('compressed_input', 'the gzip data is damaged: its checksum does not match')
  } while (await hasMore(packed))
}

async function hasMore(packed: ByteReader): Promise<boolean> {
  for (;;) {
    const [next] = await packed.peek(1)
    if (next !== 0) return next !== undefined
    await packed.skip(1)
  }
}

async function skipHeader(packed: ByteReader): Promise<void> {
  const beginning = await packed.peek(magic.length)
  if (beginning.length === magic.length && !beginning.equals(magic))
    throw new PackingDamage('compressed_input', 'data that is not gzip follows the gzip data')
  const flags = (await readExactly(packed, 10))[3]!
  if (flags & hasExtra) await readExactly(packed, (await readExactly(packed, 2)).readUInt16LE())
  if (flags & hasName) await skipText(packed)
  if (flags & hasComment) await skipText(packed)
  if (flags & hasCrc) await readExactly(packed, 2)
}

async function skipText(packed: ByteReader): Promise<void> {
  while ((await readExactly(packed, 1))[0] !== 0) {}
}

async function readExactly(packed: ByteReader, count: number): Promise<Buffer> {
  const bytes = await packed.take(count)
  if (bytes.length < count) throw new PackingDamage('truncated_record', 'the gzip data is cut off')
  return bytes
}
