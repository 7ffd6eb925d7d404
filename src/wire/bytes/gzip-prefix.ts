// Prepends contents to a gzip file without packing the rest again: deflate is a sequence of blocks, so new blocks can
// come before the old ones. Only the checksum and the length are recomputed. Source: RFC 1952, RFC 1951.

import assert from 'node:assert/strict'
import { constants, crc32, deflateRawSync } from 'node:zlib'

const headerBytes = 10
const trailerBytes = 8

/**
 * @param packed one gzip member without optional header fields, as node:zlib makes it.
 * @param unpacked the contents of `packed`.
 * @returns the pieces of a gzip file of `prefix` followed by `unpacked`; most are views of `packed`.
 */
export function prependToGzip(prefix: Buffer, packed: Buffer, unpacked: Buffer): readonly Buffer[] {
  assert.equal(packed[3], 0, 'a gzip header with optional fields')
  // A sync flush ends on a byte boundary and leaves the last block open for more.
  const before = deflateRawSync(prefix, { finishFlush: constants.Z_SYNC_FLUSH })
  const trailer = Buffer.alloc(trailerBytes)
  trailer.writeUInt32LE(crc32(unpacked, crc32(prefix)), 0)
  trailer.writeUInt32LE((prefix.length + unpacked.length) % 2 ** 32, 4)
  return [packed.subarray(0, headerBytes), before, packed.subarray(headerBytes, -trailerBytes), trailer]
}
