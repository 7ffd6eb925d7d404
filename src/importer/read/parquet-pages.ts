// Checks the page headers of a row group before it is read: hyparquet trusts their lengths, so that a single changed byte
// could keep it busy for ever.

import { crc32 } from 'node:zlib'
import type {
  AsyncBuffer,
  ColumnChunk,
  ColumnMetaData,
  FileMetaData,
  PageHeader,
  RowGroup,
  SchemaTree,
} from 'hyparquet'
import { parquetMetadata, readOffsetIndex } from 'hyparquet'
import { parquetHeader } from 'hyparquet/src/column.js'

/** Including statistics. */
const headerBytesMax = 64 * 1024
/** Limits the footer, since its parsed form takes a hundred times its size in memory. */
const footerBytesMax = 64 * 1024 * 1024
/** The length of the footer and the magic number. */
const trailerBytes = 8
/**
 * Writers start a new page after a mebibyte or so. A header that states a larger size must be plausible for the packed
 * size.
 */
const pageBytesMax = 64 * 1024 * 1024
/** Deflate compresses no better than this, Snappy and LZ4 less well; zstd and Brotli exceed it only for repeated data. */
const unpackedPerByteMax = 1_032
/** Repeated and missing values take no bytes, so a tiny page can contain any number of values; all must fit in memory. */
const pageValuesMax = 16 * 1024 * 1024
/** A value that is not part of a run takes at least one bit. */
const valuesPerByteMax = 8

/** Reads the footer. @throws Error for an implausible footer. */
export async function readParquetMetadata(file: AsyncBuffer): Promise<FileMetaData> {
  const trailerAt = Math.max(0, file.byteLength - trailerBytes)
  const trailer = new DataView(await file.slice(trailerAt))
  const footerBytes = trailer.byteLength < trailerBytes ? Infinity : trailer.getUint32(0, true)
  if (footerBytes > trailerAt) throw new Error('its end does not say where its footer starts')
  if (footerBytes > footerBytesMax)
    throw new Error(`its footer has ${footerBytes} bytes, more than the limit of ${footerBytesMax}`)
  const end = await file.slice(trailerAt - footerBytes)
  checkThrift(new Uint8Array(end, 0, footerBytes))
  return parquetMetadata(end)
}

/**
 * @throws Error when the row counts of the groups do not add up to the file's row count, or when a group lacks columns of
 * the schema.
 */
export function checkRowGroups({ num_rows, row_groups }: FileMetaData, schema: SchemaTree): void {
  if (row_groups.reduce((sum, group) => sum + group.num_rows, 0n) !== num_rows)
    throw new Error('its row groups do not add up to its number of rows')
  const leaves = new Set<string | undefined>(listLeafNames(schema))
  for (const { columns, num_rows } of row_groups) {
    if (num_rows < 0n) throw new Error('a row group has a negative number of rows')
    const names = new Set(columns.map(({ meta_data }) => meta_data?.path_in_schema.join('\0')))
    // Ignores groups that have columns without metadata, since `checkColumnPages` reports them.
    if (!names.has(undefined) && !leaves.isSubsetOf(names)) throw new Error('a row group lacks columns of the schema')
  }
}

function listLeafNames({ children, path }: SchemaTree): string[] {
  if (children.length > 0) return children.flatMap(listLeafNames)
  // A schema without columns consists only of its root.
  return path.length === 0 ? [] : [path.join('\0')]
}

/** @throws Error for a page with an implausible header. */
export async function checkColumnPages(file: AsyncBuffer, { columns, num_rows }: RowGroup): Promise<void> {
  for (const chunk of columns) {
    const { meta_data: column } = chunk
    if (column === undefined) throw new Error('it is encrypted, or spread over several files')
    if (column.path_in_schema.length === 1 && column.num_values < num_rows) throw new Error('a column lacks rows')
    await checkPageList(file, chunk, await checkAndListPages(file, column))
  }
}

/** Checks the offset index, by which hyparquet finds page headers: it must list only pages whose headers were checked. */
async function checkPageList(file: AsyncBuffer, chunk: ColumnChunk, pages: ReadonlySet<number>): Promise<void> {
  const { offset_index_offset: from, offset_index_length: length } = chunk
  if (!from || !length) return
  const bytes = await file.slice(Number(from), Number(from) + length)
  checkThrift(new Uint8Array(bytes))
  const { page_locations } = readOffsetIndex({ view: new DataView(bytes), offset: 0 })
  if (!page_locations.every(({ offset }) => pages.has(Number(offset))))
    throw new Error('the offset index of a column names pages that do not exist')
}

/** @returns the offsets of the column's pages. */
async function checkAndListPages(file: AsyncBuffer, column: ColumnMetaData): Promise<ReadonlySet<number>> {
  const pages = new Set<number>()
  const first = Number(column.data_page_offset)
  const start = Math.min(Number(column.dictionary_page_offset || first), first)
  const end = start + Number(column.total_compressed_size)
  if (start < 0 || end < start || end > file.byteLength) throw new Error('a column is outside the file')
  let values = 0n
  for (let at = start; values < column.num_values; ) {
    if (at >= end) throw new Error('a column is cut off')
    pages.add(at)
    const ahead = await file.slice(at, Math.min(at + headerBytesMax, end))
    checkThrift(new Uint8Array(ahead))
    const reader = { view: new DataView(ahead), offset: 0 }
    const header = parquetHeader(reader)
    const body = at + reader.offset
    values += countPageValues(header, column)
    at = body + header.compressed_page_size
    if (!(header.compressed_page_size >= 0) || at > end) throw new Error('a page is longer than its column')
    if (header.crc !== undefined && crc32(new Uint8Array(await file.slice(body, at))) !== header.crc >>> 0)
      throw new Error('the checksum of a page does not match')
  }
  return pages
}

/** @returns how many values of the column are in the page. */
function countPageValues(header: PageHeader, { num_values, total_uncompressed_size }: ColumnMetaData): bigint {
  const { data_page_header, data_page_header_v2: v2, dictionary_page_header, uncompressed_page_size } = header
  const page = data_page_header ?? v2 ?? dictionary_page_header
  if (page === undefined) return 0n
  const levelBytes = v2 === undefined ? 0 : v2.definition_levels_byte_length + v2.repetition_levels_byte_length
  // A count that is missing in the header is undefined or NaN, despite its type; `isCountWithin` then returns false.
  const isPossible =
    isCountWithin(page.num_values, Number(num_values)) &&
    isCountWithin(uncompressed_page_size, Number(total_uncompressed_size)) &&
    isCountWithin(levelBytes, header.compressed_page_size) &&
    isCountWithin(v2?.num_rows ?? 0, page.num_values) &&
    page.encoding !== undefined
  if (!isPossible) throw new Error('a page has more values than its column')
  // Checks the page's stated sizes, since memory is allocated for them before the page's bytes are read.
  const { compressed_page_size } = header
  const values = page.num_values
  if (uncompressed_page_size > Math.max(pageBytesMax, compressed_page_size * unpackedPerByteMax))
    throw new Error(`a page of ${compressed_page_size} bytes claims to unpack to ${uncompressed_page_size}`)
  if (values > Math.max(pageValuesMax, uncompressed_page_size * valuesPerByteMax))
    throw new Error(`a page of ${uncompressed_page_size} bytes claims to hold ${values} values`)
  return page === dictionary_page_header ? 0n : BigInt(values)
}

function isCountWithin(count: number, countMax: number): boolean {
  return count >= 0 && count <= countMax
}

/** Parquet's structures nest less than ten levels deep. */
const depthMax = 64
const longList = 15
const types = { stop: 0, true: 1, false: 2, byte: 3, i16: 4, i32: 5, i64: 6, double: 7, binary: 8, list: 9, struct: 12 }

/**
 * Checks a structure of Thrift's compact protocol before hyparquet reads it: hyparquet allocates each list as long as it
 * claims to be, so a few bytes could exhaust memory. Source: thrift-compact-protocol.md of apache/thrift.
 * @throws Error when the structure does not end within the bytes.
 */
function checkThrift(bytes: Uint8Array): void {
  let at = 0
  skipStruct(0)

  function readByte(): number {
    if (at >= bytes.length) throw new Error('a part of its metadata is cut off')
    return bytes[at++]!
  }

  function readVarint(): number {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = readByte()
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new Error('a number in its metadata has more than ten bytes')
  }

  function skipBytes(count: number): void {
    at += count
    if (at > bytes.length) throw new Error('a part of its metadata exceeds its bounds')
  }

  function skipStruct(depth: number): void {
    for (let field = readByte(); (field & 0x0f) !== types.stop; field = readByte()) {
      if (field >> 4 === 0) readVarint()
      skipValue(field & 0x0f, depth)
    }
  }

  function skipList(depth: number): void {
    const head = readByte()
    const type = head & 0x0f
    const count = head >> 4 === longList ? readVarint() : head >> 4
    // Each item of a list takes at least a byte, even a boolean.
    if (count > bytes.length - at) throw new Error(`a list in its metadata claims to hold ${count} values`)
    for (let left = count; left > 0; left--)
      if (type === types.true || type === types.false) readByte()
      else skipValue(type, depth)
  }

  function skipValue(type: number, depth: number): void {
    if (depth > depthMax) throw new Error(`its metadata nests more than ${depthMax} levels deep`)
    if (type === types.byte) readByte()
    else if (type === types.i16 || type === types.i32 || type === types.i64) readVarint()
    else if (type === types.double) skipBytes(8)
    else if (type === types.binary) skipBytes(readVarint())
    else if (type === types.list) skipList(depth + 1)
    else if (type === types.struct) skipStruct(depth + 1)
    else if (type !== types.true && type !== types.false)
      throw new Error(`its metadata has a value of the unknown type ${type}`)
  }
}
