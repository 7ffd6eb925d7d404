// Hashes the raw files, to detect changes after staging.

import { statSync } from 'node:fs'
import { JobStopped } from '../job/job-paused.ts'
import type { RawSource } from '../job/manifest.ts'
import { computeFileSha256 } from '../job/sha256.ts'
import type { RawFile } from '../read/read-record.ts'

/** @throws JobStopped if the file is missing. */
export async function hashRawFile(file: RawFile, signal: AbortSignal): Promise<RawSource> {
  const before = readStat(file)
  const sha256 = await computeFileSha256(file.path, signal)
  return { ...file, sha256, ...before }
}

/** @throws JobStopped if the content of a file has changed since it was staged. */
export async function checkSourcesUnchanged(sources: readonly RawSource[]): Promise<void> {
  const changed = await findChangedSource(sources)
  if (changed === null) return
  throw new JobStopped(
    `${changed.path} has changed since it was staged. Restore the original file, or plan the job again in another folder`,
  )
}

/**
 * Finds a file whose content has changed since it was staged. Missing files do not count: all of their records are staged,
 * and the files would only be read again if staging is repeated.
 */
export async function findChangedSource(sources: readonly RawSource[]): Promise<RawSource | null> {
  for (const source of sources) {
    if (isUnchangedSinceHashed(source)) continue
    const size = statSync(source.path, { throwIfNoEntry: false })?.size
    if (size === undefined) continue
    if (size !== source.bytes || (await computeFileSha256(source.path)) !== source.sha256) return source
  }
  return null
}

/** @throws JobStopped if a file was written to while it was read. */
export function checkUnchangedWhileRead(sources: readonly RawSource[]): void {
  for (const source of sources) {
    if (isUnchangedSinceHashed(source)) continue
    // Throws if the file is missing.
    readStat(source)
    throw new JobStopped(
      `${source.path} changed while it was read. Run again when nothing writes to it any more; it is then staged again`,
    )
  }
}

/** Whether the file has not been written to since it was hashed. */
export function isUnchangedSinceHashed({ path, bytes, changedMs }: RawSource): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.size === bytes && stat.mtimeMs === changedMs
}

function readStat({ path }: { readonly path: string }): { bytes: number; changedMs: number } {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw new JobStopped(`${path} is missing. Restore it, or plan the job without it`)
  return { bytes: stat.size, changedMs: stat.mtimeMs }
}
