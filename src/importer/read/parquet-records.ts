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
import { CompressionDamage } from './byte-reader.ts'
import { yieldToEventLoop } from './event-loop.ts'
import { checkColumnPages, checkRowGroups, readParquetMetadata } from './parquet-pages.ts'
import { createRowConverter, toHyparquetSchema } from './parquet-values.ts'
import type { ReadRecord } from './read-record.ts'
import {
  addRecordPositions,
  encodeTypedRecord,
  isRecordTooLarge,
  type TypedRecord,
  tooLargeRecord,
} from './typed-records.ts'

const magic = Buffer.from('PAR1')
const encryptedMagic = Buffer.from('PARE')
/** Unpacked size of a slice; its rows take a multiple of that in memory. */
const sliceBytes = 8 * 1024 * 1024
const sliceRowsMax = 20_000
/** Rows without values take hardly any bytes, so a small file could claim any number of them. */
const emptyRowsMax = 100_000

/** Snappy is not listed, since hyparquet supports it itself. */
const unpackers: Compressors = {
  GZIP: createBoundedUnpacker(gunzipSync),
  ZSTD: createBoundedUnpacker(zstdDecompressSync),
  BROTLI: createBoundedUnpacker(brotliDecompressSync),
  LZ4: unpackHadoopLz4,
  LZ4_RAW: unpackLz4,
}

type Unpacker = (input: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array

/** Unpacks no more than the page's stated size: a page of a few megabytes could unpack to more than fits in memory. */
function createBoundedUnpacker(unpack: Unpacker): (input: Uint8Array, outputBytes: number) => Uint8Array {
  return (input, outputBytes) => {
    try {
      // Node does not accept a maximum of 0. If a page then unpacks to one byte too many, hyparquet notices.
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

/** @param object the file's name in the positions of its records. */
export async function* readParquetRecords(path: string, object: string): AsyncGenerator<ReadRecord> {
  await using handle = await open(path)
  const file = createFileBuffer(handle, (await handle.stat()).size)
  // Any error of hyparquet counts as damage to the file, unless the disk failed.
  yield* addRecordPositions(object, readSlices(file), async error => {
    if (file.diskError !== null) throw file.diskError
    // Looks for the magic number at the end of the file, which a truncated file lacks.
    const end = Buffer.from(await file.slice(Math.max(0, file.byteLength - magic.length)))
    const reason = isParquet(end) ? 'compressed_input' : 'truncated_record'
    return new CompressionDamage(`the Parquet file cannot be read: ${error.message}`, reason)
  })
}

async function* readSlices(file: AsyncBuffer): AsyncGenerator<Iterable<TypedRecord>> {
  const metadata = await readParquetMetadata(file)
  const schema = parquetSchema(metadata)
  const convert = createRowConverter(schema)
  const row_groups = metadata.row_groups.map(withDistinctColumns)
  const stored = { ...metadata, schema: toHyparquetSchema(metadata.schema), row_groups }
  const columns = schema.children.map(({ element }) => element.name)
  checkRowGroups(metadata, schema)
  let emptyCount = 0
  const encodeRows = function* (rows: readonly Record<string, unknown>[]): Generator<TypedRecord> {
    for (const row of rows) {
      if (isEmpty(row) && ++emptyCount > emptyRowsMax)
        throw new Error(`it claims more than ${emptyRowsMax} rows that hold no value`)
      // Check sizes before converting: every element of a list may refer to the same text of a dictionary.
      yield isRecordTooLarge(row) ? tooLargeRecord : encodeTypedRecord(convert(row))
    }
  }
  for (const { rowStart, rowEnd, group } of planSlices(stored)) {
    if (group !== null) await checkColumnPages(file, group)
    // Lets signals and timers run: reading rows that take no bytes never waits for the disk, and would block them.
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
        // hyparquet calls this only for INT96, since `toHyparquetSchema` removes the types of all other times.
        parsers: { timestampFromNanoseconds: nanoseconds => nanoseconds },
        rowStart,
        rowEnd,
      })
      for (const [index, row] of rows.entries()) row[column] = cells[index]?.[column]
    }
    yield encodeRows(rows)
  }
}

/**
 * The group without columns that have the same name as an earlier column. Of columns with one name, hyparquet would read
 * all but return only the first, and an error in any other would end the process.
 */
function withDistinctColumns(group: RowGroup): RowGroup {
  const byName = Map.groupBy(group.columns, ({ meta_data }) => meta_data?.path_in_schema.join('\0'))
  return { ...group, columns: [...byName.values()].map(([first]) => first!) }
}

function isEmpty(row: Readonly<Record<string, unknown>>): boolean {
  for (const name in row) if (row[name] !== undefined && row[name] !== null) return false
  return true
}

/**
 * Divides the rows into slices that never span two groups, since a column is read group by group. Only the first slice of a
 * group names the group.
 */
function* planSlices({ row_groups }: FileMetaData) {
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
 * The file for hyparquet, which requests several parts at once but awaits only one of them: an error in another part would
 * end the process. So a failed read returns an empty part, which hyparquet notices, and the disk's error is kept for later.
 */
function createFileBuffer(handle: FileHandle, byteLength: number) {
  const file = {
    byteLength,
    diskError: null as Error | null,
    async slice(start: number, end = byteLength): Promise<ArrayBuffer> {
      const length = Math.min(end, byteLength) - start
      if (!(start >= 0 && length > 0)) return new ArrayBuffer(0)
      const bytes = new Uint8Array(length)
      await handle.read(bytes, 0, length, start).catch(error => {
        file.diskError = error
      })
      return bytes.buffer
    },
  }
  return file
}

const matchBytesMin = 4
const lengthMore = 15
/** Before each Hadoop block: its unpacked and its packed size. */
const hadoopHeaderBytes = 8

/**
 * Decompresses an LZ4 block, which Node cannot. Source: lz4_Block_format.md of lz4/lz4.
 * @param outputBytes unpacked size of the block.
 * @throws RangeError for an invalid block.
 */
export function unpackLz4(input: Uint8Array, outputBytes: number): Uint8Array {
  const output = new Uint8Array(outputBytes)
  let from = 0
  let to = 0
  const readLength = (length: number): number => {
    if (length < lengthMore) return length
    for (;;) {
      const byte = input[from++]
      if (byte === undefined) throw createLz4Error()
      length += byte
      if (byte < 255) return length
    }
  }
  while (from < input.length) {
    const token = input[from++]!
    const literalBytes = readLength(token >> 4)
    if (from + literalBytes > input.length || to + literalBytes > outputBytes) throw createLz4Error()
    output.set(input.subarray(from, from + literalBytes), to)
    from += literalBytes
    to += literalBytes
    // The last sequence consists of literals only.
    if (from === input.length) break
    const distance = input[from]! | (input[from + 1]! << 8)
    from += 2
    const matchEnd = to + readLength(token & 15) + matchBytesMin
    if (distance === 0 || distance > to || matchEnd > outputBytes) throw createLz4Error()
    // Byte by byte, since a match may overlap its own output.
    for (; to < matchEnd; to++) output[to] = output[to - distance]!
  }
  if (to !== outputBytes) throw createLz4Error()
  return output
}

/**
 * Parquet's deprecated LZ4 codec: blocks in Hadoop frames. Some writers produce a block without a frame. Source:
 * Compression.md of apache/parquet-format.
 */
export function unpackHadoopLz4(input: Uint8Array, outputBytes: number): Uint8Array {
  const view = new DataView(input.buffer, input.byteOffset, input.length)
  const output = new Uint8Array(outputBytes)
  let to = 0
  for (let from = 0; from < input.length; ) {
    const isFramed = from + hadoopHeaderBytes <= input.length
    const givenBytes = isFramed ? view.getUint32(from) : 0
    const ownBytes = isFramed ? view.getUint32(from + 4) : 0
    from += hadoopHeaderBytes
    if (!isFramed || to + givenBytes > outputBytes || from + ownBytes > input.length)
      return unpackLz4(input, outputBytes)
    output.set(unpackLz4(input.subarray(from, from + ownBytes), givenBytes), to)
    to += givenBytes
    from += ownBytes
  }
  return output
}

function createLz4Error(): RangeError {
  return new RangeError('a block of LZ4 is damaged')
}
