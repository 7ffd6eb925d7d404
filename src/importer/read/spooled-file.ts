// A file that can be read from anywhere, also when its bytes come out of an archive.

import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { UnpackedFile } from './unpacked-files.ts'

export interface FileOnDisk extends AsyncDisposable {
  readonly path: string
}

/** @param path of the file in which the bytes lie, packed or not. A copy of packed ones ends with the use of it. */
export async function onDisk({ bytes, isUnpackedFile }: UnpackedFile, path: string): Promise<FileOnDisk> {
  if (isUnpackedFile) return { path, [Symbol.asyncDispose]: async () => {} }
  const folder = await mkdtemp(join(tmpdir(), 'pennon-import-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  const copy = join(folder, 'unpacked')
  try {
    await pipeline(bytes, createWriteStream(copy))
  } catch (error) {
    await remove()
    throw error
  }
  return { path: copy, [Symbol.asyncDispose]: remove }
}
