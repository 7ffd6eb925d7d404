// What the scan found for the lines of a part, one line of text each, in a file beside it. With it a part can be read
// from any line, although what an event says of its person depends on all records before it.

import { existsSync, readFileSync } from 'node:fs'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import type { StagedPart } from '../job/staged-part.ts'

export interface ScanNote {
  /**
   * The same record was read before. `c`: it has no id, so its content says so; `i`: its id says so; `o`: its id says
   * so, and what it says is other than what was read.
   */
  readonly d?: 'c' | 'i' | 'o'
  /** Which of the person's properties are news, as indexes of the snapshot's keys; absent when all are. */
  readonly p?: readonly number[]
  /** How many of its devices belong to another user. */
  readonly s?: number
  /** Its own identification is refused, because the device belongs to another user. */
  readonly r?: 1
  /** It only tells of groups whose type the project has no place for. */
  readonly g?: 1
}

export function scanNotesFile({ id }: StagedPart): string {
  return `scanned/${id}.jsonl.zst`
}

/** @param notes empty text where there is nothing to say. */
export function writeScanNotes(folder: JobFolder, part: StagedPart, notes: readonly string[]): void {
  // Reading finds a damaged file by the checksum.
  const params = { [constants.ZSTD_c_checksumFlag]: 1 }
  folder.write(scanNotesFile(part), zstdCompressSync(Buffer.from(notes.join('\n')), { params }))
}

export function hasScanNotes(folder: JobFolder, part: StagedPart): boolean {
  return existsSync(folder.file(scanNotesFile(part)))
}

export function encodeScanNote(note: ScanNote): string {
  for (const _ in note) return JSON.stringify(note)
  return ''
}

/** @returns a line for each line of the part. @throws JobStopped when the file is damaged. */
export function readScanNotes(folder: JobFolder, part: StagedPart): readonly string[] {
  const path = folder.file(scanNotesFile(part))
  try {
    return zstdDecompressSync(readFileSync(path)).toString().split('\n')
  } catch (error) {
    throw new JobStopped(
      `${path} cannot be read (${(error as Error).message}). Delete it and run again: it is made anew from the staged records`,
    )
  }
}

const nothing: ScanNote = {}

export function decodeScanNote(text: string): ScanNote {
  return text === '' ? nothing : (JSON.parse(text) as ScanNote)
}
