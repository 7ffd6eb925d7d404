// Reads the rows of a Parquet file in slices, so that a row group of a million rows need not fit in memory.

import { type FileHandle, open } from 'node:fs/promises'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import {
  type AsyncBuffer,
  type Compressors,
  type FileMetaData,
  parquetReadObjects,
  parquetSchema,
  type RowGroup,
} from 'hyparquet'
import { RecordReject, type RejectReason } from '../records/imported-event.ts'
import { yieldToEventLoop } from './event-loop.ts'
import { unpackHadoopLz4, unpackLz4 } from './lz4-block.ts'
import { checkGroups, checkPages, readMetadata } from './parquet-pages.ts'
import { createRowConverter, toHyparquetSchema } from './parquet-values.ts'
import type { ReadRecord } from './read-record.ts'
import { parseTableName } from './table-name.ts'
import { encodeTypedRecord, isTooLarge, tooLargeRecord } from './typed-record.ts'

const magic = Buffer.from('PAR1')
const encryptedMagic = Buffer.from('PARE')
/** Unpacked size of a slice; its rows take a multiple of that in memory. */
const sliceBytes = 8 * 1024 * 1024
const sliceRowsMax = 20_000
/** Rows without values take hardly any bytes, so a small file could claim any number of them. */
const emptyRowsMax = 100_000

/** hyparquet itself supports Snappy. */
const unpackers: Compressors = {
  GZIP: createBoundedUnpacker(gunzipSync),
  ZSTD: createBoundedUnpacker(zstdDecompressSync),
  BROTLI: createBoundedUnpacker(brotliDecompressSync),
  LZ4: unpackHadoopLz4,
  LZ4_RAW: unpackLz4,
}

type Unpacker = (input: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array

/** Stops at the page's stated size: a page of a few megabytes could unpack to more than fits in memory. */
function createBoundedUnpacker(unpack: Unpacker): (input: Uint8Array, outputBytes: number) => Uint8Array {
  return (input, outputBytes) => {
    try {
      // Node does not accept 0. If a page then has one byte too many, hyparquet notices.
      return unpack(input, { maxOutputLength: Math.max(1, outputBytes) })
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw cause
      throw new Error(`a page unpacks to more than its stated ${outputBytes} bytes`, { cause })
    }
  }
}

export function isParquet(beginning: Buffer): boolean {
  return beginning.equals(magic) || beginning.equals(encryptedMagic)
}

/** @param object how records name the file. */
export async function* readParquetRecords(path: string, object: string): AsyncGenerator<ReadRecord> {
  await using handle = await open(path)
  const table = parseTableName(object)
  const file = new FileParts(handle, (await handle.stat()).size)
  let line = 1
  try {
    for await (const record of readRows(file)) {
      yield { raw: { object, line, byte: 0 }, ...record, isJson: true, table }
      line++
    }
  } catch (error) {
    // Any error of hyparquet is a fault of the file, unless the disk failed.
    if (file.diskError !== null) throw file.diskError
    const parsed = new RecordReject(
      await findDamageReason(handle),
      null,
      `the Parquet file cannot be read: ${(error as Error).message}`,
    )
    yield { raw: { object, line, byte: 0 }, bytes: Buffer.alloc(0), parsed: parsed.outcome(), isJson: true, table }
  }
}

async function* readRows(file: AsyncBuffer) {
  const metadata = await readMetadata(file)
  const schema = parquetSchema(metadata)
  const convert = createRowConverter(schema)
  const stored = { ...metadata, schema: toHyparquetSchema(metadata.schema) }
  const columns = schema.children.map(({ element }) => element.name)
  checkGroups(metadata, schema)
  let emptyCount = 0
  for (const { rowStart, rowEnd, group } of planSlices(metadata)) {
    if (group !== null) await checkPages(file, group)
    // Reading rows that take no bytes never waits for the disk, and would block signals and timers.
    await yieldToEventLoop()
    const rows = Array.from({ length: rowEnd - rowStart }, (): Record<string, unknown> => ({}))
    for (const column of columns) {
      // One column at a time: with several, only the first error is caught, and a second one would end the process.
      const cells = await parquetReadObjects({
        file,
        metadata: stored,
        columns: [column],
        compressors: unpackers,
        utf8: false,
        useOffsetIndex: true,
        // Only called for INT96: `toHyparquetSchema` removes the types of all other times.
        parsers: { timestampFromNanoseconds: nanoseconds => nanoseconds },
        rowStart,
        rowEnd,
      })
      for (const [index, row] of rows.entries()) row[column] = cells[index]?.[column]
    }
    // Check sizes before converting: every element of a list may refer to the same text of a dictionary.
    for (const row of rows) {
      if (isEmpty(row) && ++emptyCount > emptyRowsMax)
        throw new Error(`it claims more than ${emptyRowsMax} rows that hold no value`)
      yield isTooLarge(row) ? tooLargeRecord : encodeTypedRecord(convert(row))
    }
  }
}

function isEmpty(row: Readonly<Record<string, unknown>>): boolean {
  for (const name in row) if (row[name] !== undefined && row[name] !== null) return false
  return true
}

interface Slice {
  readonly rowStart: number
  readonly rowEnd: number
  /** The group that starts with this slice. */
  readonly group: RowGroup | null
}

/** Slices of rows that never cross a group, since a column is read group by group. */
function* planSlices({ row_groups }: FileMetaData): Generator<Slice> {
  let groupStart = 0
  for (const group of row_groups) {
    const groupEnd = groupStart + Number(group.num_rows)
    const rowBytes = Number(group.total_byte_size) / Number(group.num_rows)
    const step = Math.max(1, Math.min(sliceRowsMax, Math.floor(sliceBytes / rowBytes)))
    for (let rowStart = groupStart; rowStart < groupEnd; rowStart += step)
      yield { rowStart, rowEnd: Math.min(rowStart + step, groupEnd), group: rowStart === groupStart ? group : null }
    groupStart = groupEnd
  }
}

/**
 * The file for hyparquet, which requests several parts at once but awaits only one of them: an error in another would end
 * the process. So a failed read returns an empty part, which hyparquet notices, and keeps the error of the disk for later.
 */
class FileParts implements AsyncBuffer {
  readonly #handle: FileHandle
  readonly byteLength: number
  diskError: Error | null = null

  constructor(handle: FileHandle, byteLength: number) {
    this.#handle = handle
    this.byteLength = byteLength
  }

  async slice(start: number, end = this.byteLength): Promise<ArrayBuffer> {
    const length = Math.min(end, this.byteLength) - start
    if (!(start >= 0 && length > 0)) return new ArrayBuffer(0)
    const bytes = new Uint8Array(length)
    try {
      await this.#handle.read(bytes, 0, length, start)
    } catch (error) {
      this.diskError = error as Error
    }
    return bytes.buffer
  }
}

/** A truncated file lacks the magic number at its end. */
async function findDamageReason(handle: FileHandle): Promise<RejectReason> {
  const { size } = await handle.stat()
  const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, Math.max(0, size - 4))
  return isParquet(buffer) ? 'compressed_input' : 'truncated_record'
}
