// The records of an Avro object container file, block by block. Source: Apache Avro 1.12 specification; docs/wire/import.md
// §1.4, §1.10 (Heap and Pendo export it).

import { crc32, inflateRawSync, zstdDecompressSync } from 'node:zlib'
import { snappyUncompress } from 'hyparquet'
import { type JsonValue, parseJson } from '#core/json.ts'
import { AvroCursor, createAvroReader } from './avro-schema.ts'
import { type ByteReader, CompressionDamage } from './byte-reader.ts'
import type { ReadRecord } from './read-record.ts'
import { recordBytesMax } from './split-records.ts'
import { addRecordPositions, encodeTypedRecord, type TypedRecord } from './typed-records.ts'
import type { UnpackedFile } from './unpacked-files.ts'

const magic = Buffer.from('Obj\x01', 'latin1')
const avroFile = 'the Avro file'
const syncBytes = 16
const longBytesMax = 10
/** Writers use blocks of some ten kilobytes. The limit is needed since a block may be in memory twice. */
const blockBytesMax = recordBytesMax
/** Largest metadata in a header. Schemas are far smaller. */
const headerBytesMax = 16 * 2 ** 20
/** Records that hold only nulls take no bytes, so a tiny file could claim any number of them. */
const emptyRecordsMax = 100_000

export function isAvro(beginning: Buffer): boolean {
  return beginning.equals(magic)
}

export function readAvroRecords({ object, bytes, damage }: UnpackedFile): AsyncGenerator<ReadRecord> {
  return addRecordPositions(object, readBlocks(bytes, damage), error => damage() ?? toDamage(error))
}

async function* readBlocks(bytes: ByteReader, damage: UnpackedFile['damage']): AsyncGenerator<Iterable<TypedRecord>> {
  const { read, unpack, sync } = await readHeader(bytes)
  let emptyCount = 0
  const readBlock = function* (block: AvroCursor, count: number): Generator<TypedRecord> {
    for (let left = count; left > 0; left--) {
      const { at, isAtEnd } = block
      let value: JsonValue
      try {
        block.beginRecord()
        value = read(block)
      } catch (cause) {
        throw isAtEnd ? new Error('a block has fewer records than it says') : cause
      }
      if (block.at === at && ++emptyCount > emptyRecordsMax)
        throw new Error(`it claims more than ${emptyRecordsMax} records that take no bytes`)
      yield encodeTypedRecord(value)
    }
    if (!block.isAtEnd) throw new Error('a block has more records than it says')
  }
  while ((await bytes.peek(1)).length > 0) {
    const count = await readNextSize(bytes, 'records')
    const block = unpack(await bytes.takeExactly(await readNextSize(bytes), avroFile))
    if (!(await bytes.takeExactly(syncBytes, avroFile)).equals(sync))
      throw new Error('a block does not end where it should')
    yield readBlock(new AvroCursor(block), count)
  }
  const found = damage()
  if (found !== null) throw found
}

const codecs: Readonly<Record<string, (block: Buffer) => Buffer>> = {
  null: block => block,
  deflate: block => inflateRawSync(block, { maxOutputLength: blockBytesMax }),
  zstandard: block => zstdDecompressSync(block, { maxOutputLength: blockBytesMax }),
  snappy: unpackSnappy,
}

async function readHeader(bytes: ByteReader) {
  await bytes.take(magic.length)
  const meta = new Map<string, string>()
  let left = headerBytesMax
  const readText = async () => {
    const size = await readNextSize(bytes)
    left -= size + 1
    if (left < 0) throw new Error(`its header has more than ${headerBytesMax} bytes`)
    return (await bytes.takeExactly(size, avroFile)).toString()
  }
  for (let count = await readNextCount(bytes); count > 0; count = await readNextCount(bytes))
    for (; count > 0; count--) meta.set(await readText(), await readText())
  const codec = meta.get('avro.codec') ?? 'null'
  const unpack = Object.hasOwn(codecs, codec) ? codecs[codec]! : null
  if (unpack === null) throw new Error(`its codec is ${codec}: write it with deflate, snappy, zstandard or none`)
  return {
    read: createAvroReader(parseJson(meta.get('avro.schema') ?? '')),
    unpack,
    sync: await bytes.takeExactly(syncBytes, avroFile),
  }
}

async function readNextCount(bytes: ByteReader): Promise<number> {
  const count = Number(await readNextLong(bytes))
  if (count < 0) await readNextLong(bytes)
  return Math.abs(count)
}

async function readNextSize(bytes: ByteReader, what: 'bytes' | 'records' = 'bytes'): Promise<number> {
  const size = Number(await readNextLong(bytes))
  if (size < 0 || size > blockBytesMax) throw new Error(`a block claims to have ${size} ${what}`)
  return size
}

async function readNextLong(bytes: ByteReader): Promise<bigint> {
  const end = (await bytes.peek(longBytesMax)).findIndex(byte => byte < 0x80) + 1
  return new AvroCursor(await bytes.takeExactly(end || longBytesMax, avroFile)).long()
}

/** A Snappy block starts with the unpacked length and is followed by the CRC-32 of the unpacked bytes. */
function unpackSnappy(block: Buffer): Buffer {
  const packed = block.subarray(0, -4)
  let length = 0
  for (const [index, byte] of packed.subarray(0, 5).entries()) {
    length += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) break
  }
  if (length > blockBytesMax) throw new Error(`a block claims to have ${length} bytes`)
  const unpacked = Buffer.alloc(length)
  snappyUncompress(packed, unpacked)
  if (crc32(unpacked) !== block.readUInt32BE(block.length - 4))
    throw new Error('the checksum of a block does not match')
  return unpacked
}

function toDamage(error: Error): CompressionDamage {
  if (error instanceof CompressionDamage) return error
  // An error of a system call means that the disk has failed, not that the file is damaged.
  if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
  return new CompressionDamage(`${avroFile} cannot be read: ${error.message}`)
}
