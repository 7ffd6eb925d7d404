// Reads the records of a file on this machine, in any format and compression and in bounded memory: the file is only read as
// fast as its records are taken. Source: docs/wire/import.md §1.9.

import { appendFileSync, closeSync, createReadStream, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isAvro, readAvroRecords } from './avro-records.ts'
import { ByteReader, CompressionDamage } from './byte-reader.ts'
import { unlimitedSpace, type WaitForSpace } from './disk-space.ts'
import { isYieldDue, yieldToEventLoop } from './event-loop.ts'
import { createNewFile } from './link-safe-files.ts'
import { isParquet, readParquetRecords } from './parquet-records.ts'
import { createDamagedRecord, type RawFile, type ReadRecord, type ReadRecords } from './read-record.ts'
import { detectTextFormat, readTextRecords } from './text-records.ts'
import { type UnpackedFile, unpackFiles } from './unpacked-files.ts'

export interface SpoolOptions {
  /** Where compressed files are unpacked, one at a time: a copy left by a crash is replaced by the next copy. */
  readonly folder: string
  /** Larger files are refused, since a small archive can unpack to more than fits on any disk. */
  readonly bytesMax?: number
  /** Without this function, the disk may be filled. */
  readonly waitForSpace?: WaitForSpace
}

export interface ReadOptions {
  /**
   * Where compressed Parquet files are unpacked, since Parquet must be read from its end. The folder is created when
   * needed.
   */
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
const checkEveryBytes = 16 * 1024 ** 2
const spoolBytesMax = 64 * 1024 ** 3

export function createRecordReader(options: ReadOptions): ReadRecords {
  return (file, onDiskBytes) => readFile(file, options, onDiskBytes)
}

async function* readFile(
  file: RawFile,
  options: ReadOptions,
  onDiskBytes: (bytes: number) => void = () => {},
): AsyncGenerator<ReadRecord> {
  const stream = createReadStream(file.path, { highWaterMark: options.chunkBytes ?? chunkBytes })
  const countedChunks = async function* () {
    for await (const chunk of stream) {
      onDiskBytes(chunk.length)
      yield chunk
    }
  }
  const source = new ByteReader(countedChunks())
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
  const { object, isUnpackedFile, damage } = unpacked
  if (isUnpackedFile) return yield* readParquetRecords(file.path, object)
  const copy = join(spool.folder, 'unpacked')
  try {
    await unpackToDisk(unpacked, copy, spool)
    const found = damage()
    if (found !== null) throw found
    yield* readParquetRecords(copy, object)
  } catch (error) {
    if (!(error instanceof CompressionDamage)) throw error
    yield createDamagedRecord(object, error, { line: 1, byte: 0 })
  } finally {
    rmSync(copy, { force: true })
  }
}

/** @throws CompressionDamage for more than `bytesMax` bytes. */
async function unpackToDisk(
  { bytes }: UnpackedFile,
  copy: string,
  { folder, bytesMax = spoolBytesMax, waitForSpace = unlimitedSpace }: SpoolOptions,
): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = createNewFile(copy)
  try {
    let bytesLeft = bytesMax
    let bytesUntilCheck = 0
    for await (const chunk of bytes) {
      bytesLeft -= chunk.length
      bytesUntilCheck -= chunk.length
      if (bytesUntilCheck < 0) {
        await waitForSpace()
        bytesUntilCheck = checkEveryBytes
      }
      if (bytesLeft < 0)
        throw new CompressionDamage(`it unpacks to more than ${bytesMax} bytes: give the file unpacked`)
      appendFileSync(file, chunk)
    }
  } finally {
    closeSync(file)
  }
}
