// Writes a backup: a tar of plain files. The last file, SHA256SUMS, has the SHA-256 of every other file, so that operators
// can check an unpacked backup with `sha256sum -c SHA256SUMS`. The caller decides which files belong in the backup.

import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { blockBytes, countPaddingBytes, encodeTarHeader } from './tar-header.ts'

export const checksumsName = 'SHA256SUMS'

export interface BackupWriter {
  /** Bytes written so far. */
  readonly bytes: number
  /** Adds the file, up to the size that it has when it is opened. @throws when fewer bytes can be read. */
  addFile(name: string, path: string): Promise<void>
  addContent(name: string, content: string | Uint8Array): Promise<void>
  /** Adds the checksums; the file is on the disk when this returns. */
  finish(): Promise<void>
  close(): Promise<void>
}

const chunkBytes = 1024 * 1024

/**
 * @param path of a file that does not exist yet; only its owner may read it.
 * @param options.checkStop called before each chunk; throws to abort the backup.
 */
export async function createBackupWriter(
  path: string,
  options: { nowMs: () => number; checkStop: () => void },
): Promise<BackupWriter> {
  const file = await open(path, 'wx', 0o600)
  const sums: string[] = []
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let bytes = 0

  async function write(chunk: Uint8Array): Promise<void> {
    await file.writeFile(chunk)
    bytes += chunk.byteLength
  }

  async function addContent(name: string, given: string | Uint8Array): Promise<void> {
    const content = Buffer.from(given)
    await write(encodeTarHeader({ name, size: content.length }, options.nowMs()))
    await write(content)
    await write(Buffer.alloc(countPaddingBytes(content.length)))
    sums.push(`${createHash('sha256').update(content).digest('hex')}  ${name}\n`)
  }

  async function addFile(name: string, from: string): Promise<void> {
    const source = await open(from, 'r')
    try {
      const { size } = await source.stat()
      await write(encodeTarHeader({ name, size }, options.nowMs()))
      const hash = createHash('sha256')
      for (let at = 0; at < size; ) {
        options.checkStop()
        const { bytesRead } = await source.read(buffer, 0, Math.min(chunkBytes, size - at), at)
        if (bytesRead === 0) throw new Error(`${from} was truncated while being copied`)
        const chunk = buffer.subarray(0, bytesRead)
        hash.update(chunk)
        await write(chunk)
        at += bytesRead
      }
      await write(Buffer.alloc(countPaddingBytes(size)))
      sums.push(`${hash.digest('hex')}  ${name}\n`)
    } finally {
      await source.close()
    }
  }

  return {
    get bytes() {
      return bytes
    },
    addFile,
    addContent,
    finish: async () => {
      await addContent(checksumsName, sums.join(''))
      await write(Buffer.alloc(2 * blockBytes))
      await file.sync()
    },
    close: () => file.close(),
  }
}
