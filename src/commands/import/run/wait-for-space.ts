// Waits while the disk of a job is full: every stage can resume, so the stage is called again once there is space.
// Source: ours; `pennon import fetch` does the same for each file.

import { statfsSync } from 'node:fs'
import { backOffMs } from '#core/back-off.ts'
import type { FetchClock } from '#importer/fetch/waiting.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import type { FindSpaceProblem, WaitForSpace } from '#importer/read/disk-space.ts'
import { isDiskFull } from '../job/open-job.ts'

export interface SpaceOptions {
  readonly folder: { readonly path: string }
  readonly progress: Pick<StageProgress, 'say' | 'waiting'>
  readonly signal: AbortSignal
  readonly clock: FetchClock
  /** Free bytes on the folder's disk. */
  readonly freeBytes?: (path: string) => number
}

const lookEveryMs = 1_000
const fullDisk = 'the disk is full'
/** Space to wait for: a stage writes more than this, and would read its files for nothing without it. */
const spaceBytesMin = 1024 * 1024
/** Tries again without more free bytes, as a quota or inodes may be the reason: after a minute, then less and less often. */
const tryAnyway = { firstMs: 60_000, longestMs: 600_000 }

/** @throws what `stage` throws for any other reason; the signal's reason when it is aborted. */
export async function retryWhenDiskFull<T>(stage: () => Promise<T>, options: SpaceOptions): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await stage()
    } catch (error) {
      if (!isDiskFull(error) || options.signal.aborted) throw error
      await waitUntilFreed(options, backOffMs(tryAnyway, tries))
    }
}

/**
 * Stages call the result before they write: it waits while only the reserve is free, so that half-written files are neither
 * cut off nor written again.
 * @returns a function that throws the signal's reason when it is aborted, and what `findSpaceProblem` throws.
 */
export function createSpaceWait(
  findSpaceProblem: FindSpaceProblem,
  { progress, signal, clock }: Omit<SpaceOptions, 'folder' | 'freeBytes'>,
): WaitForSpace {
  return async () => {
    const problem = findSpaceProblem(0)
    if (problem === null) return
    progress.say(problem)
    progress.waiting(fullDisk)
    while (findSpaceProblem(spaceBytesMin) !== null) await clock.sleep(lookEveryMs, signal)
    progress.waiting(null)
  }
}

async function waitUntilFreed(
  { folder, progress, signal, clock, freeBytes = freeBytesOf }: SpaceOptions,
  waitMsMax: number,
): Promise<void> {
  // Measures before the warning is printed, since the user may then free space at once.
  const enough = freeBytes(folder.path) + spaceBytesMin
  progress.say(
    `WARNING: the disk of ${folder.path} is full. No progress is lost: free disk space, and the command continues.`,
  )
  progress.waiting(fullDisk)
  const untilMs = clock.nowMs() + waitMsMax
  while (freeBytes(folder.path) < enough && clock.nowMs() < untilMs) await clock.sleep(lookEveryMs, signal)
  progress.waiting(null)
}

function freeBytesOf(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}
