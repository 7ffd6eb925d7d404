// Unpacks a backup into a folder and checks every file against the checksums at the backup's end. No file may be used
// before this has returned.

import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { blockBytes, countPaddingBytes, decodeTarHeader, isBackupName } from './tar-header.ts'
import { checksumsName } from './write-backup.ts'

/** The message is a line for operators that names the damaged file inside the backup, if known. */
export class BackupDamagedError extends Error {}

const chunkBytes = 1024 * 1024

/**
 * @param folder exists and is empty.
 * @param onBytes called at most once per MiB with the position reached in the backup; if it throws, the unpacking ends.
 * @returns names of the unpacked files.
 * @throws BackupDamagedError, system errors.
 */
export async function unpackBackup(
  path: string,
  folder: string,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<readonly string[]> {
  const found = new Map<string, string>()
  const source = await open(path, 'r')
  try {
    const { size: total } = await source.stat()
    const header = Buffer.alloc(blockBytes)
    for (let at = 0; ; ) {
      const read = await source.read(header, 0, blockBytes, at)
      const entry = read.bytesRead < blockBytes ? 'cut' : decodeTarHeader(header)
      if (entry === null) break
      if (entry === 'cut' || entry === 'damaged' || at + blockBytes + entry.size > total)
        throw createHeaderError(entry, found)
      if (!isBackupName(entry.name) || found.has(entry.name))
        throw new BackupDamagedError(`it contains ${JSON.stringify(entry.name)}, which is not part of a Pennon backup`)
      const place = { source, from: at + blockBytes, size: entry.size }
      found.set(entry.name, await unpackFile(place, join(folder, entry.name), onBytes))
      at += blockBytes + entry.size + countPaddingBytes(entry.size)
    }
  } finally {
    await source.close()
  }
  await verifyChecksums(found, folder)
  return [...found.keys()].filter(name => name !== checksumsName)
}

function createHeaderError(entry: unknown, found: ReadonlyMap<string, string>): BackupDamagedError {
  const last = [...found.keys()].at(-1)
  const place = last === undefined ? 'at its beginning' : `after ${last}`
  return new BackupDamagedError(entry === 'damaged' ? `it is damaged ${place}` : `it is incomplete: it ends ${place}`)
}

async function unpackFile(
  { source, from, size }: { readonly source: FileHandle; readonly from: number; readonly size: number },
  path: string,
  onBytes: (bytes: number) => void,
): Promise<string> {
  onBytes(from)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const hash = createHash('sha256')
  const target = await open(path, 'wx', 0o600)
  try {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(size, 1)))
    for (let at = 0; at < size; ) {
      const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, size - at), from + at)
      if (bytesRead === 0) throw new BackupDamagedError('it was truncated while being read')
      const chunk = buffer.subarray(0, bytesRead)
      hash.update(chunk)
      await target.writeFile(chunk)
      at += bytesRead
      onBytes(from + at)
    }
    await target.sync()
  } finally {
    await target.close()
  }
  return hash.digest('hex')
}

async function verifyChecksums(found: ReadonlyMap<string, string>, folder: string): Promise<void> {
  if (!found.has(checksumsName)) throw new BackupDamagedError(`it has no ${checksumsName}: it is incomplete`)
  const lines = (await readFile(join(folder, checksumsName), 'utf8')).split('\n').slice(0, -1)
  const told = new Map<string, string>()
  for (const line of lines) {
    const [, sum, name] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? []
    if (name === undefined) throw new BackupDamagedError(`${checksumsName} in it is damaged`)
    told.set(name, sum!)
  }
  for (const [name, sum] of found)
    if (name !== checksumsName && told.get(name) !== sum)
      throw new BackupDamagedError(
        told.has(name) ? `${name} in it is damaged` : `${name} in it has no checksum: ${checksumsName} is damaged`,
      )
  for (const name of told.keys()) if (!found.has(name)) throw new BackupDamagedError(`${name} is missing in it`)
}
