// The hashes of the raw files: what was staged is only worth something while it is what the files hold.

import { statSync } from 'node:fs'
import { JobStopped } from '../job/job-paused.ts'
import type { RawSource } from '../job/manifest.ts'
import { fileSha256 } from '../job/sha256.ts'
import type { RawFile } from '../read/read-record.ts'

/** @throws JobStopped for a file that is not there. */
export async function hashRawFile(file: RawFile, signal: AbortSignal): Promise<RawSource> {
  const before = statOf(file)
  const sha256 = await fileSha256(file.path, signal)
  return { ...file, sha256, ...before }
}

/** @throws JobStopped for a file that holds something else than when it was staged. */
export async function checkUnchanged(sources: readonly RawSource[]): Promise<void> {
  const changed = await findChanged(sources)
  if (changed !== null) throw new JobStopped(changedText(changed.path))
}

/**
 * Finds a file that holds something else than when it was staged. One that is gone is none: everything of it is staged,
 * and only staging anew would read it.
 */
export async function findChanged(sources: readonly RawSource[]): Promise<RawSource | null> {
  for (const source of sources) {
    const now = statSync(source.path, { throwIfNoEntry: false })
    if (now === undefined || (now.size === source.bytes && now.mtimeMs === source.changedMs)) continue
    if (now.size === source.bytes && (await fileSha256(source.path)) === source.sha256) continue
    return source
  }
  return null
}

/** @throws JobStopped when a file was written to while it was read. */
export function checkStill(sources: readonly RawSource[]): void {
  for (const source of sources) {
    const { bytes, changedMs } = statOf(source)
    if (bytes !== source.bytes || changedMs !== source.changedMs)
      throw new JobStopped(
        `${source.path} changed while it was read. Run again when nothing writes to it: it is staged anew`,
      )
  }
}

function statOf({ path }: { readonly path: string }): { bytes: number; changedMs: number } {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw new JobStopped(`${path} is not there. Put it back, or plan the job without it`)
  return { bytes: stat.size, changedMs: stat.mtimeMs }
}

function changedText(path: string): string {
  return `${path} has changed since it was staged. Put back the file as it was, or plan the job anew in another folder`
}
