// What the scan found for the lines of a part, one line of text each, in a file beside it. With it a part can be read
// from any line, although what an event says of its person depends on all records before it.

import { readFileSync } from 'node:fs'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { JobFolder } from '../job/job-folder.ts'
import { sha256Hex } from '../job/sha256.ts'
import type { StagedPart } from '../job/staged-part.ts'

export interface ScanNote {
  /** The same record was read before. `c`: it has no id, so its content says so; `i`: its id says so. */
  readonly d?: 'c' | 'i'
  /** Which of the person's properties are news, as indexes of the snapshot's keys; absent when all are. */
  readonly p?: readonly number[]
  /** How many of its devices belong to another user. */
  readonly s?: number
  /** Its own identification is refused, because the device belongs to another user. */
  readonly r?: 1
}

export function scanNotesFile({ id }: StagedPart): string {
  return `scanned/${id}.jsonl.zst`
}

/** @param notes empty text where there is nothing to say. @returns the file's SHA-256. */
export function writeScanNotes(folder: JobFolder, part: StagedPart, notes: readonly string[]): string {
  const packed = zstdCompressSync(Buffer.from(notes.join('\n')))
  folder.write(scanNotesFile(part), packed)
  return sha256Hex(packed)
}

export function encodeScanNote(note: ScanNote): string {
  for (const _ in note) return JSON.stringify(note)
  return ''
}

/** @returns a line for each line of the part. */
export function readScanNotes(folder: JobFolder, part: StagedPart): readonly string[] {
  return zstdDecompressSync(readFileSync(folder.file(scanNotesFile(part))))
    .toString()
    .split('\n')
}

const nothing: ScanNote = {}

export function decodeScanNote(text: string): ScanNote {
  return text === '' ? nothing : (JSON.parse(text) as ScanNote)
}
