// The interface between readers of raw files, of any format, and staging: every record of a file in order, including those
// that cannot be parsed, with its position for the user.

import type { CompressionDamage } from './byte-reader.ts'
import { type CsvHeader, createParseReject, type ParsedSourceRecord } from './parse-record.ts'

/** The position of a record in a file that the user can open. */
export interface RawPosition {
  /** Path of the raw file, relative to the job's folder or as the user gave it; `archive.zip!inner.json` inside archives. */
  readonly object: string
  /** From 1. */
  readonly line: number
  /** Offset of the line's first byte in the unpacked file. */
  readonly byte: number
}

export interface ReadRecord {
  /** The record's position. In formats without lines, such as Parquet, `line` is the row number and `byte` is 0. */
  readonly raw: RawPosition
  /**
   * The record as in the file, without its line end, at most `recordBytesMax`; for binary formats such as Parquet, its JSON.
   * Shown in rejects.
   */
  readonly bytes: Uint8Array
  /** Size of the record in the file, if `bytes` is only the record's beginning. */
  readonly cutLength?: number
  /** The parsed record; a blank line is skipped, and a broken line rejected. No content of a file stops the reading. */
  readonly parsed: ParsedSourceRecord
  /** The header of the record's CSV file. Absent for records of other formats, and until the header was read. */
  readonly header?: CsvHeader
  /** See `SourceRecord`. */
  readonly table: string | null
}

/** A file on this machine that contains records, or an archive of such files. */
export interface RawFile {
  readonly path: string
  /** The file's name in `RawPosition.object`; names inside archives follow after `!`. */
  readonly object: string
}

/**
 * All records of a file, with the same order and positions on every read.
 * @param onDiskBytes receives how many bytes were read from the disk, before decompression. For formats that are not read
 *   sequentially, the sum may be less than the size of the file.
 * @throws only if the file cannot be opened or the disk fails.
 */
export type ReadRecords = (file: RawFile, onDiskBytes?: (bytes: number) => void) => AsyncIterable<ReadRecord>

const ending = /\.(?:gz|gzip|zst|zstd|zip|jsonl?|ndjson|[ct]sv|txt|avro|parquet|pq|snappy|deflate)$/i

/** @returns the name of a file without folder, archive and extensions: `pageviews` for `heap.zip!2024/pageviews.json.gz`. */
export function parseTableName(object: string): string | null {
  let name = object.slice(Math.max(object.lastIndexOf('/'), object.lastIndexOf('!')) + 1)
  // Extensions are removed one by one, since a search for several at once takes quadratic time for a long name in an
  // archive.
  while (ending.test(name)) name = name.replace(ending, '')
  return name || null
}

/** The reject for damage that ends the reading of a file. */
export function createDamagedRecord(
  object: string,
  { reason, message }: CompressionDamage,
  place: Omit<RawPosition, 'object'>,
): ReadRecord {
  const parsed = createParseReject(reason, message)
  return { raw: { object, ...place }, bytes: Buffer.alloc(0), parsed, table: parseTableName(object) }
}
