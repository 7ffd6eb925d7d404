// Reads the records of a file on this machine, in any format and compression and in bounded memory: the file is only read as
// fast as its records are taken. Source: docs/wire/import.md §1.9.

import { createReadStream } from 'node:fs'
import { RecordReject } from '../records/imported-event.ts'
import { isAvro, readAvroRecords } from './avro-records.ts'
import { ByteReader } from './byte-reader.ts'
import { PackingDamage } from './decompress.ts'
import { isYieldDue, yieldToEventLoop } from './event-loop.ts'
import { isParquet, readParquetRecords } from './parquet-records.ts'
import type { RawFile, ReadRecord, ReadRecords } from './read-record.ts'
import { type SpoolOptions, unpackToDisk } from './spooled-file.ts'
import { parseTableName } from './table-name.ts'
import { detectTextFormat, readTextRecords } from './text-records.ts'
import { type UnpackedFile, unpackFiles } from './unpacked-files.ts'

export interface ReadOptions {
  /** Where compressed Parquet is unpacked, since it must be read from its end. Created when needed. */
  readonly spool: SpoolOptions
  /** Format of text files. Default: detected for each file. A JSON list is always detected. */
  readonly format?: 'json' | 'csv'
  /** Longer records are rejected. Default: `recordBytesMax` of split-records.ts. */
  readonly recordBytesMax?: number
  /** Bytes per read from the disk. */
  readonly chunkBytes?: number
}

const chunkBytes = 256 * 1024
const magicBytes = 4

export function createRecordReader(options: ReadOptions): ReadRecords {
  return (file, onDiskBytes) => readFile(file, options, onDiskBytes)
}

async function* readFile(
  file: RawFile,
  options: ReadOptions,
  onDiskBytes: (bytes: number) => void = () => {},
): AsyncGenerator<ReadRecord> {
  const stream = createReadStream(file.path, { highWaterMark: options.chunkBytes ?? chunkBytes })
  const source = new ByteReader(reportDiskBytes(stream, onDiskBytes))
  try {
    for await (const unpacked of unpackFiles(file.object, source))
      for await (const record of readRecords(unpacked, file, options)) {
        if (isYieldDue()) await yieldToEventLoop()
        yield record
      }
  } finally {
    await source.close()
  }
}

async function* reportDiskBytes(
  stream: AsyncIterable<Buffer>,
  onDiskBytes: (bytes: number) => void,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of stream) {
    onDiskBytes(chunk.length)
    yield chunk
  }
}

async function* readRecords(unpacked: UnpackedFile, file: RawFile, options: ReadOptions): AsyncGenerator<ReadRecord> {
  const beginning = await unpacked.bytes.peek(magicBytes)
  if (isAvro(beginning)) yield* readAvroRecords(unpacked)
  else if (isParquet(beginning)) yield* readParquet(unpacked, file, options)
  else {
    const found = await detectTextFormat(unpacked)
    const format = found === 'array' ? found : (options.format ?? found)
    yield* readTextRecords(unpacked, format, options.recordBytesMax)
  }
}

/** A Parquet file must be read from its end, so a compressed one is unpacked to disk first. */
async function* readParquet(unpacked: UnpackedFile, file: RawFile, { spool }: ReadOptions): AsyncGenerator<ReadRecord> {
  let damage: PackingDamage | null
  try {
    await using disk = await unpackToDisk(unpacked, file.path, spool)
    damage = unpacked.damage()
    if (damage === null) yield* readParquetRecords(disk.path, unpacked.object)
  } catch (error) {
    if (!(error instanceof PackingDamage)) throw error
    damage = error
  }
  if (damage === null) return
  const parsed = new RecordReject(damage.reason, null, damage.message).outcome()
  const raw = { object: unpacked.object, line: 1, byte: 0 }
  yield { raw, bytes: Buffer.alloc(0), parsed, isJson: true, table: parseTableName(unpacked.object) }
}
