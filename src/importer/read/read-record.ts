// What a reader of raw files gives, whatever their format, and what staging takes: every record of a file in its order,
// also those that cannot be read, with the place where the user finds it.

import type { CsvDelimiter } from './csv-cells.ts'
import type { ParsedRecord } from './parse-record.ts'

/** Where a record stands in the file that the user can open. */
export interface RawPosition {
  /** Path of the raw file, relative to the job's folder or as the user gave it; `archive.zip!inner.json` inside archives. */
  readonly object: string
  /** From 1. */
  readonly line: number
  /** Offset of the line's first byte in the unpacked file. */
  readonly byte: number
}

export interface ReadRecord {
  /** For rows without lines, as in Parquet, `line` is the number of the row and `byte` is 0. */
  readonly raw: RawPosition
  /**
   * The record as it stands in the file, without its line end, at most `recordBytesMax`; for formats that are no text,
   * such as Parquet, its JSON. Rejects show it.
   */
  readonly bytes: Uint8Array
  /** How many bytes it has in the file, where `bytes` are only its beginning. */
  readonly cutLength?: number
  /** A blank line is skipped, a broken one rejected; nothing that a file holds ends the reading of it. */
  readonly parsed: ParsedRecord
  /** Whether `bytes` are the JSON of the record, not a row of CSV. */
  readonly isJson: boolean
  /** The names in the header of the file, for a row of CSV. */
  readonly columns?: readonly string[]
  /** What is between the cells of a row, where that is no comma. */
  readonly delimiter?: CsvDelimiter
  /** As in `CsvShape`, where it is so. */
  readonly hasEscapes?: boolean
  /** As in `SourceRecord`. */
  readonly table: string | null
}

/** A file on this machine that holds records; archives hold several. */
export interface RawFile {
  readonly path: string
  /** How `RawPosition.object` names it; names inside archives follow after `!`. */
  readonly object: string
}

/**
 * All records of a file, in the same order and with the same positions whenever it is read.
 * @param onDiskBytes told how much was read from the disk, which is less than what is unpacked; of formats that are not
 *   read from their beginning it may be told less than there is.
 * @throws only where the file cannot be opened or the disk fails.
 */
export type ReadRecords = (file: RawFile, onDiskBytes?: (bytes: number) => void) => AsyncIterable<ReadRecord>
