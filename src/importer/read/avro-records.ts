// The records of an Avro object container file, block by block. Source: Apache Avro 1.12 specification; docs/wire/import.md
// §1.4, §1.10 (Heap and Pendo export it).

import { crc32, inflateRawSync, zstdDecompressSync } from 'node:zlib'
import { snappyUncompress } from 'hyparquet'
import { isJsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { RecordReject, type RejectReason } from '../records/imported-event.ts'
import { AvroCursor } from './avro-cursor.ts'
import { type AvroReader, createAvroReader } from './avro-schema.ts'
import type { ByteReader } from './byte-reader.ts'
import { PackingDamage } from './decompress.ts'
import type { ReadRecord } from './read-record.ts'
import { recordBytesMax } from './split-records.ts'
import { parseTableName } from './table-name.ts'
import { encodeJson, encodeTypedRecord } from './typed-record.ts'
import type { UnpackedFile } from './unpacked-files.ts'

const magic = Buffer.from('Obj\x01', 'latin1')
const syncBytes = 16
const longBytesMax = 10
/** Writers use blocks of some ten kilobytes. A block may be in memory twice. */
const blockBytesMax = recordBytesMax
/** Largest metadata in a header. Schemas are far smaller. */
const headerBytesMax = 16 * 2 ** 20
/** Records that hold only nulls take no bytes, so a tiny file could claim any number of them. */
const emptyRecordsMax = 100_000

export function isAvro(beginning: Buffer): boolean {
  return beginning.equals(magic)
}

export async function* readAvroRecords({ object, bytes, damage }: UnpackedFile): AsyncGenerator<ReadRecord> {
  const table = parseTableName(object)
  let line = 1
  const toRecord = (record: Pick<ReadRecord, 'bytes' | 'parsed'>): ReadRecord => ({
    raw: { object, line, byte: 0 },
    ...record,
    isJson: true,
    table,
  })
  try {
    const { read, unpack, sync } = await readHeader(bytes)
    let emptyCount = 0
    while ((await bytes.peek(1)).length > 0) {
      const count = await readNextSize(bytes, 'records')
      const block = new AvroCursor(unpack(await readExactly(bytes, await readNextSize(bytes))))
      if (!(await readExactly(bytes, syncBytes)).equals(sync))
        throw createDamage('a block does not end where it should')
      for (let left = count; left > 0; left--) {
        const { at } = block
        const value = readNextValue(block, read)
        if (block.at === at && ++emptyCount > emptyRecordsMax)
          throw createDamage(`it claims more than ${emptyRecordsMax} records that take no bytes`)
        yield toRecord(
          isJsonObject(value)
            ? encodeTypedRecord(value)
            : { bytes: encodeJson(value), parsed: createReject('json_not_object') },
        )
        line++
      }
      if (!block.isAtEnd) throw createDamage('a block has more records than it says')
    }
    const found = damage()
    if (found !== null) throw found
  } catch (error) {
    const { reason, message } = damage() ?? toDamage(error as Error)
    yield toRecord({ bytes: Buffer.alloc(0), parsed: createReject(reason, message) })
  }
}

function readNextValue(block: AvroCursor, read: AvroReader): JsonValue {
  const { isAtEnd } = block
  block.beginRecord()
  try {
    return read(block)
  } catch (cause) {
    throw isAtEnd ? createDamage('a block has fewer records than it says') : cause
  }
}

type Unpack = (block: Buffer) => Buffer

const codecs: Readonly<Record<string, Unpack>> = {
  null: block => block,
  deflate: block => inflateRawSync(block, { maxOutputLength: blockBytesMax }),
  zstandard: block => zstdDecompressSync(block, { maxOutputLength: blockBytesMax }),
  snappy: unpackSnappy,
}

async function readHeader(bytes: ByteReader) {
  await readExactly(bytes, magic.length)
  const meta = new Map<string, string>()
  let left = headerBytesMax
  const readText = async () => {
    const size = await readNextSize(bytes)
    left -= size + 1
    if (left < 0) throw createDamage(`its header has more than ${headerBytesMax} bytes`)
    return (await readExactly(bytes, size)).toString()
  }
  for (let count = await nextCount(bytes); count > 0; count = await nextCount(bytes))
    for (; count > 0; count--) meta.set(await readText(), await readText())
  const codec = meta.get('avro.codec') ?? 'null'
  const unpack = Object.hasOwn(codecs, codec) ? codecs[codec]! : null
  if (unpack === null) throw createDamage(`its codec is ${codec}: write it with deflate, snappy, zstandard or none`)
  return {
    read: createAvroReader(parseJson(meta.get('avro.schema') ?? '')),
    unpack,
    sync: await readExactly(bytes, syncBytes),
  }
}

async function nextCount(bytes: ByteReader): Promise<number> {
  const count = Number(await readNextLong(bytes))
  if (count < 0) await readNextLong(bytes)
  return Math.abs(count)
}

async function readNextSize(bytes: ByteReader, what: 'bytes' | 'records' = 'bytes'): Promise<number> {
  const size = Number(await readNextLong(bytes))
  if (size < 0 || size > blockBytesMax) throw createDamage(`a block claims to have ${size} ${what}`)
  return size
}

async function readNextLong(bytes: ByteReader): Promise<bigint> {
  const ahead = await bytes.peek(longBytesMax)
  const end = ahead.findIndex(byte => byte < 0x80) + 1
  if (end === 0 && ahead.length < longBytesMax) throw createTruncationDamage()
  return new AvroCursor(await bytes.take(end || longBytesMax)).long()
}

async function readExactly(bytes: ByteReader, count: number): Promise<Buffer> {
  const taken = await bytes.take(count)
  if (taken.length < count) throw createTruncationDamage()
  return taken
}

/** A Snappy block starts with the unpacked length and is followed by the CRC-32 of the unpacked bytes. */
function unpackSnappy(block: Buffer): Buffer {
  const packed = block.subarray(0, -4)
  let length = 0
  for (const [index, byte] of packed.subarray(0, 5).entries()) {
    length += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) break
  }
  if (length > blockBytesMax) throw createDamage(`a block claims to have ${length} bytes`)
  const unpacked = Buffer.alloc(length)
  snappyUncompress(packed, unpacked)
  if (crc32(unpacked) !== block.readUInt32BE(block.length - 4))
    throw createDamage('the checksum of a block does not match')
  return unpacked
}

function toDamage(error: Error): { reason: RejectReason; message: string } {
  if (error instanceof PackingDamage) return error
  // A failure of the disk, not damage of the file.
  if ((error as NodeJS.ErrnoException).syscall !== undefined) throw error
  return createDamage(error.message)
}

function createDamage(detail: string): PackingDamage {
  return new PackingDamage('compressed_input', `the Avro file cannot be read: ${detail}`)
}

function createTruncationDamage(): PackingDamage {
  return new PackingDamage('truncated_record', 'the Avro file is cut off')
}

function createReject(reason: RejectReason, detail?: string): ReadRecord['parsed'] {
  return new RecordReject(reason, null, detail).outcome()
}
