// Makes a file available for random access, also when its bytes come from an archive.

import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { PackingDamage } from './decompress.ts'
import { unlimitedSpace, type WaitForSpace } from './disk-space.ts'
import type { UnpackedFile } from './unpacked-files.ts'

export interface FileOnDisk extends AsyncDisposable {
  readonly path: string
}

export interface SpoolOptions {
  /** Where compressed files are unpacked, one at a time: a copy left by a crash is replaced by the next one. */
  readonly folder: string
  /** Larger files are refused, since a small archive can unpack to more than any disk holds. */
  readonly bytesMax?: number
  /** Without it, the disk may be filled. */
  readonly waitForSpace?: WaitForSpace
}

const gib = 1024 ** 3
const checkEveryBytes = 16 * 1024 ** 2
const spoolBytesMax = 64 * gib

/**
 * @param path of the file with the bytes, compressed or not.
 * @returns the file itself, or else an unpacked copy, which is removed on disposal.
 * @throws PackingDamage for more than `bytesMax` bytes.
 */
export async function unpackToDisk(
  { bytes, isUnpackedFile }: UnpackedFile,
  path: string,
  { folder, bytesMax = spoolBytesMax, waitForSpace = unlimitedSpace }: SpoolOptions,
): Promise<FileOnDisk> {
  if (isUnpackedFile) return { path, [Symbol.asyncDispose]: async () => {} }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const copy = join(folder, 'unpacked')
  const remove = () => rm(copy, { force: true })
  // A crash may have left a copy.
  await remove()
  try {
    await pipeline(limitBytes(bytes, bytesMax, waitForSpace), createWriteStream(copy, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    await remove()
    throw error
  }
  return { path: copy, [Symbol.asyncDispose]: remove }
}

async function* limitBytes(
  bytes: AsyncIterable<Buffer>,
  bytesMax: number,
  waitForSpace: WaitForSpace,
): AsyncGenerator<Buffer> {
  let left = bytesMax
  let bytesUntilCheck = 0
  for await (const chunk of bytes) {
    left -= chunk.length
    bytesUntilCheck -= chunk.length
    if (bytesUntilCheck < 0) {
      await waitForSpace()
      bytesUntilCheck = checkEveryBytes
    }
    if (left < 0)
      throw new PackingDamage('compressed_input', `it unpacks to more than ${bytesMax} bytes: give the file unpacked`)
    yield chunk
  }
}
