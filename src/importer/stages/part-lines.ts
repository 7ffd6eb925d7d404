// Reads the lines of a staged part.

import { existsSync, readFileSync } from 'node:fs'
import { zstdDecompressSync } from 'node:zlib'
import { isYieldDue, yieldToEventLoop } from '#importer/read/event-loop.ts'
import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedPart } from '../job/staged-part.ts'
import { decodeLine, type StagedLine } from './staged-line.ts'

const lineFeed = 0x0a

export interface PartLine {
  /** From 1. */
  readonly number: number
  readonly byteEnd: number
  readonly staged: StagedLine
}

/** @throws JobStopped if the part is missing or its bytes changed. */
export async function* readPartLines(folder: JobFolder, part: StagedPart, afterLine = 0): AsyncGenerator<PartLine> {
  const bytes = unpackPart(folder, part)
  for (let [at, number] = [0, 1]; at < bytes.length; number++) {
    const end = bytes.indexOf(lineFeed, at)
    if (number > afterLine) {
      yield { number, byteEnd: end + 1, staged: decodeLine(bytes.toString('utf8', at, end)) }
      if (isYieldDue()) await yieldToEventLoop()
    }
    at = end + 1
  }
}

function unpackPart(folder: JobFolder, part: StagedPart): Buffer {
  const path = folder.file(part.object)
  const packed = existsSync(path) ? readFileSync(path) : null
  if (packed === null || sha256Hex(packed) !== part.sha256)
    throw new JobStopped(
      `${path} ${packed === null ? 'is missing' : 'has changed since it was staged'}. Restore it, or plan the job again in another folder`,
    )
  return zstdDecompressSync(packed)
}
