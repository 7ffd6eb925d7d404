// Looks for texts in every file of a data folder, including compressed data: values that the log compressed, and the
// blocks of the event store, whose columns, indexes and marks are all compressed.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import Database from 'better-sqlite3'

/** @returns for each text the files that contain it, by their paths in the folder. */
export function searchFiles(folder: string, texts: readonly string[]): Map<string, string[]> {
  const found = new Map(texts.map(text => [text, [] as string[]]))
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const contents = [...contentsOf(path)]
    for (const [text, files] of found)
      if (contents.some(bytes => bytes.includes(text))) files.push(path.slice(folder.length + 1))
  }
  return found
}

const sqliteStart = Buffer.from('SQLite format 3\0')
const zstdStart = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** The bytes of a file, and the compressed data in them. */
function* contentsOf(path: string): Iterable<Buffer> {
  const bytes = readFileSync(path)
  yield bytes
  if (bytes.subarray(0, sqliteStart.length).equals(sqliteStart)) yield* valuesOf(path)
  else yield* unpackedBlocks(bytes)
}

/** The values of all tables. In the file, a long value is split into pages. */
function* valuesOf(path: string): Iterable<Buffer> {
  const db = new Database(path, { readonly: true })
  try {
    const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
    for (const table of tables)
      for (const row of db.prepare(`SELECT * FROM "${table}"`).raw().iterate() as Iterable<unknown[]>)
        for (const value of row) {
          if (typeof value === 'string') yield Buffer.from(value)
          if (!Buffer.isBuffer(value)) continue
          yield value.subarray(0, zstdStart.length).equals(zstdStart) ? zstdDecompressSync(value) : value
        }
  } finally {
    db.close()
  }
}

const blockMethods = { none: 0x02, lz4: 0x82, zstd: 0x90 }
const checksumBytes = 16
const blockHeadBytes = 9
const blockBytesMax = 64 * 1024 * 1024

/**
 * The blocks of ClickHouse, wherever they begin: a checksum, the method, the compressed size (head included) and the
 * plain size, all little-endian. Blocks of codecs for numbers are left out.
 */
function* unpackedBlocks(bytes: Buffer): Iterable<Buffer> {
  for (let at = checksumBytes; at + blockHeadBytes < bytes.length; ) {
    const end = at + bytes.readUInt32LE(at + 1)
    const size = bytes.readUInt32LE(at + 5)
    const isBlock = end > at + blockHeadBytes && end <= bytes.length && size > 0 && size <= blockBytesMax
    const block = isBlock ? unpackedBlock(bytes[at]!, bytes.subarray(at + blockHeadBytes, end), size) : null
    if (block !== null) yield block
    at = block === null ? at + 1 : end + checksumBytes
  }
}

/** Null for bytes that only look like a block. */
function unpackedBlock(method: number, packed: Buffer, size: number): Buffer | null {
  try {
    if (method === blockMethods.lz4) return lz4Unpacked(packed, size)
    if (method !== blockMethods.zstd) return method === blockMethods.none && packed.length === size ? packed : null
    const unpacked = zstdDecompressSync(packed, { maxOutputLength: size })
    return unpacked.length === size ? unpacked : null
  } catch {
    return null
  }
}

/** Decodes an LZ4 block. Source: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md */
function lz4Unpacked(packed: Buffer, size: number): Buffer | null {
  const unpacked = Buffer.alloc(size)
  let [from, to] = [0, 0]
  const lengthOf = (nibble: number) => {
    let length = nibble
    for (let more = nibble === 15 ? 255 : 0; more === 255; length += more) more = packed.readUInt8(from++)
    return length
  }
  while (from < packed.length) {
    const token = packed.readUInt8(from++)
    const literals = lengthOf(token >> 4)
    to += packed.copy(unpacked, to, from, from + literals)
    from += literals
    if (from >= packed.length) break
    const distance = packed.readUInt16LE(from)
    from += 2
    if (distance === 0 || distance > to) return null
    for (let left = lengthOf(token & 15) + 4; left > 0; left--, to++) unpacked.writeUInt8(unpacked[to - distance]!, to)
  }
  return to === size ? unpacked : null
}
