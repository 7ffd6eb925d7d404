// The scan's notes on the lines of a part, one line each, in a separate file. With them, a part can be read from any line,
// although the person properties of an event depend on all earlier records.

import { existsSync, readFileSync } from 'node:fs'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { JobFolder } from '../job/job-folder.ts'
import { JobStopped } from '../job/job-paused.ts'
import type { StagedPart } from '../job/staged-part.ts'

export interface ScanNote {
  /**
   * A repeat of an earlier record. `c`: a record without an id, with the same content; `i`: with the same id; `o`: with the
   * same id, but other content.
   */
  readonly d?: 'c' | 'i' | 'o'
  /** Which person properties are new, as indexes of the snapshot's keys; absent if all are. */
  readonly p?: readonly number[]
  /** How many of the record's devices belong to another user. */
  readonly s?: number
  /** The record's own identification is refused, because its device belongs to another user. */
  readonly r?: 1
  /** The record only describes groups of types beyond the project's limit. */
  readonly g?: 1
}

export function nameScanNotesFile({ id }: StagedPart): string {
  return `scanned/${id}.jsonl.zst`
}

/** @param notes one per line of the part; empty if there is nothing to note. */
export function writeScanNotes(folder: JobFolder, part: StagedPart, notes: readonly string[]): void {
  // The checksum reveals a damaged file when it is read.
  const params = { [constants.ZSTD_c_checksumFlag]: 1 }
  folder.write(nameScanNotesFile(part), zstdCompressSync(Buffer.from(notes.join('\n')), { params }))
}

export function hasScanNotes(folder: JobFolder, part: StagedPart): boolean {
  return existsSync(folder.file(nameScanNotesFile(part)))
}

export function encodeScanNote(note: ScanNote): string {
  for (const _ in note) return JSON.stringify(note)
  return ''
}

/** @returns a line for each line of the part. @throws JobStopped if the file is damaged. */
export function readScanNotes(folder: JobFolder, part: StagedPart): readonly string[] {
  const path = folder.file(nameScanNotesFile(part))
  try {
    return zstdDecompressSync(readFileSync(path)).toString().split('\n')
  } catch (error) {
    throw new JobStopped(
      `${path} cannot be read (${(error as Error).message}). Delete it and run again: it is rebuilt from the staged records`,
    )
  }
}

const nothing: ScanNote = {}

export function decodeScanNote(text: string): ScanNote {
  return text === '' ? nothing : (JSON.parse(text) as ScanNote)
}
