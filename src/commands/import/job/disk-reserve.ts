// The space that an import leaves free on its disk, and how its stages wait for space. A service on the same disk answers
// 503 to all captures once less than PENNON_MIN_FREE_BYTES is free. Source: ours; `pennon backup` leaves the same space,
// and `pennon import fetch` waits for it before each file.

import { statfsSync } from 'node:fs'
import { formatBytes } from '#commands/format-bytes.ts'
import { readSetting } from '#config.ts'
import { computeBackOffMs } from '#core/back-off.ts'
import type { FetchClock } from '#importer/fetch/waiting.ts'
import { JobStopped } from '#importer/job/job-paused.ts'
import type { StageProgress } from '#importer/job/progress.ts'
import type { FindSpaceProblem, WaitForSpace } from '#importer/read/disk-space.ts'
import { isDiskFull } from './open-job.ts'

/**
 * The reserve as a multiple of the limit at which capture stops: more, so that the service can write while the import
 * waits.
 */
const reserveShare = 1.25

/** @throws JobStopped for an invalid setting. */
export function createConfiguredSpaceCheck(path: string): FindSpaceProblem {
  const read = readSetting('freeBytesMin', process.env)
  if (!read.ok) throw new JobStopped(read.error)
  return createDiskSpaceCheck(path, read.value)
}

/**
 * @param path of a folder that exists when the result is called.
 * @param freeBytesMin the value of PENNON_MIN_FREE_BYTES; 0 for no reserve.
 */
export function createDiskSpaceCheck(path: string, freeBytesMin: number, look = readDiskSpace): FindSpaceProblem {
  const keptBytes = Math.ceil(freeBytesMin * reserveShare)
  if (keptBytes === 0) return () => null
  const kept = `${formatBytes(keptBytes)} (PENNON_MIN_FREE_BYTES and a quarter)`
  return bytes => {
    const { freeBytes, totalBytes } = look(path)
    if (totalBytes < keptBytes)
      throw new JobStopped(
        `the disk of ${path} has ${formatBytes(totalBytes)} in total, but an import leaves ${kept} free for a service on the same disk. ` +
          'Use a folder on a larger disk, or lower PENNON_MIN_FREE_BYTES for this command (0 if there is no service)',
      )
    if (freeBytes >= keptBytes + bytes) return null
    const next = bytes === 0 ? '' : `, and incoming files need ${formatBytes(bytes)}`
    return (
      `WARNING: the disk of ${path} is full except for a reserve: ${formatBytes(freeBytes)} are free${next}; ${kept} stay free for a service on the same disk. ` +
      'No progress is lost: free disk space, and the command continues. Or stop it, lower PENNON_MIN_FREE_BYTES for this command, and run it again.'
    )
  }
}

function readDiskSpace(path: string) {
  const { bavail, blocks, bsize } = statfsSync(path)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

export interface SpaceWait {
  readonly progress: Pick<StageProgress, 'say' | 'waiting'>
  readonly signal: AbortSignal
  readonly clock: FetchClock
}

const lookEveryMs = 1_000
/** The free space to wait for. A stage writes more than this, so with less it would read its files for nothing. */
const spaceBytesMin = 1024 * 1024
/** Pauses between tries that are made even if no more bytes are free, since a quota or inodes may be the reason. */
const tryAnyway = { firstMs: 60_000, longestMs: 600_000 }

/**
 * Calls a stage again once there is space, since every stage can resume.
 * @throws what `stage` throws for any other reason; the signal's reason when it is aborted.
 */
export async function retryWhenDiskFull<T>(
  stage: () => Promise<T>,
  path: string,
  wait: SpaceWait,
  look = readDiskSpace,
): Promise<T> {
  for (let tries = 0; ; tries++)
    try {
      return await stage()
    } catch (error) {
      if (!isDiskFull(error) || wait.signal.aborted) throw error
      // Measure before the warning is printed: once it is printed, the user may free space at once.
      const enough = look(path).freeBytes + spaceBytesMin
      const untilMs = wait.clock.nowMs() + computeBackOffMs(tryAnyway, tries)
      const warning = `WARNING: the disk of ${path} is full. No progress is lost: free disk space, and the command continues.`
      await waitForSpace(() => look(path).freeBytes >= enough || wait.clock.nowMs() >= untilMs, warning, wait)
    }
}

/**
 * Stages call the result before they write: it waits while only the reserve is free, so that a write is neither interrupted
 * halfway nor repeated.
 * @returns a function that throws the signal's reason when it is aborted, and what `findSpaceProblem` throws.
 */
export function createSpaceWaiter(findSpaceProblem: FindSpaceProblem, wait: SpaceWait): WaitForSpace {
  return async () => {
    const problem = findSpaceProblem(0)
    if (problem !== null) await waitForSpace(() => findSpaceProblem(spaceBytesMin) === null, problem, wait)
  }
}

async function waitForSpace(
  isFreed: () => boolean,
  problem: string,
  { progress, signal, clock }: SpaceWait,
): Promise<void> {
  progress.say(problem)
  progress.waiting('the disk is full')
  while (!isFreed()) await clock.sleep(lookEveryMs, signal)
  progress.waiting(null)
}
