// Packs the items of a recording in one piece. Recordings repeat themselves: unpacked, they would put ten times as many
// bytes into the log, the worker's memory and the event store's merges. They are unpacked only when they are read.

import { constants, zstdCompressSync, zstdDecompress } from 'node:zlib'

/** Level 1 takes about 3 ms per megabyte of snapshots and shrinks them to a tenth. */
const options = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

export function compressItems(json: Uint8Array): Uint8Array<ArrayBuffer> {
  return zstdCompressSync(json, options)
}

/**
 * Unpacks off the event loop.
 * @param bytesMax the maximum unpacked length.
 * @throws Error when the items are longer, or the bytes are not packed items.
 */
export function decompressItems(packed: Uint8Array, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    zstdDecompress(packed, { maxOutputLength: Math.max(bytesMax, 1) }, (error, json) => {
      if (error === null) resolve(json)
      else reject(error)
    })
  })
}
