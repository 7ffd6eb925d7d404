// A file that can be read from anywhere, also when its bytes come out of an archive.

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
  /** Where packed bytes are unpacked to. One file at a time, so what a crash leaves is replaced by the next. */
  readonly folder: string
  /** More is refused: a small archive can stand for more than any disk has. */
  readonly bytesMax?: number
  /** The disk may be filled unless it is given. */
  readonly waitForSpace?: WaitForSpace
}

const gib = 1024 ** 3
const lookEveryBytes = 16 * 1024 ** 2
const spoolBytesMax = 64 * gib

/**
 * @param path of the file in which the bytes lie, packed or not. A copy of packed ones ends with the use of it.
 * @throws PackingDamage for more bytes than may be unpacked.
 */
export async function onDisk(
  { bytes, isUnpackedFile }: UnpackedFile,
  path: string,
  { folder, bytesMax = spoolBytesMax, waitForSpace = unlimitedSpace }: SpoolOptions,
): Promise<FileOnDisk> {
  if (isUnpackedFile) return { path, [Symbol.asyncDispose]: async () => {} }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const copy = join(folder, 'unpacked')
  const remove = () => rm(copy, { force: true })
  // What a crash left.
  await remove()
  try {
    await pipeline(atMost(bytes, bytesMax, waitForSpace), createWriteStream(copy, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    await remove()
    throw error
  }
  return { path: copy, [Symbol.asyncDispose]: remove }
}

async function* atMost(
  bytes: AsyncIterable<Buffer>,
  bytesMax: number,
  waitForSpace: WaitForSpace,
): AsyncGenerator<Buffer> {
  let left = bytesMax
  let unlooked = 0
  for await (const chunk of bytes) {
    left -= chunk.length
    unlooked -= chunk.length
    if (unlooked < 0) {
      await waitForSpace()
      unlooked = lookEveryBytes
    }
    if (left < 0)
      throw new PackingDamage('compressed_input', `it unpacks to more than ${bytesMax} bytes: give the file unpacked`)
    yield chunk
  }
}
