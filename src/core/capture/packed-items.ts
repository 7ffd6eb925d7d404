// The items of a replay in one piece, packed: what a page records repeats itself, and unpacked it would fill the log, the
// worker's memory and the event store's merges with ten times as much. They are unpacked only when they are read.

import { constants, zstdCompressSync, zstdDecompress } from 'node:zlib'

/** Level 1: about 3 ms for a megabyte of snapshots, which then takes a tenth. */
const options = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export function packItems(json: Uint8Array): Uint8Array<ArrayBuffer> {
  return zstdCompressSync(json, options)
}

/**
 * Off the event loop.
 * @param bytesMax what was packed is not longer.
 * @throws Error when it is, or the bytes are no packed items.
 */
export function unpackItems(packed: Uint8Array, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    zstdDecompress(packed, { maxOutputLength: Math.max(bytesMax, 1) }, (error, json) => {
      if (error === null) resolve(json)
      else reject(error)
    })
  })
}
