// Reads the files of a zip archive sequentially. So even a nested or truncated archive yields all files that it contains,
// without a copy on disk. The central directory at the end of the archive, where other programs start, is only checked, if
// at all. Source: APPNOTE.TXT 6.3.10 (PKWARE).

import { crc32 } from 'node:zlib'
import { type ByteReader, CompressionDamage, createTruncationError } from './byte-reader.ts'
import { decompressBytes, type StreamCompression } from './decompress.ts'

export interface ZipEntry {
  readonly name: string
  /**
   * The unpacked content: read it to its end, or not at all, before requesting the next entry. @throws CompressionDamage
   */
  readonly bytes: AsyncIterable<Buffer>
}

const zipArchive = 'the zip archive'
const fileHeader = 0x04034b50
const dataDescriptor = 0x08074b50
const directoryEntry = 0x02014b50
const directoryEnd = 0x06054b50
const zip64End = 0x06064b50
const zip64Locator = 0x07064b50
/** Signatures of the headers that may follow the archive's files. */
const listHeaders = new Set([directoryEntry, directoryEnd, zip64End, zip64Locator, 0x08064b50, 0x05054b50])
const headerBytes = 30
const zip64Field = 0x0001
/** The start of the data descriptor of an empty file. */
const emptyDescriptor = Buffer.from('PK\x07\x08\x00\x00\x00\x00', 'latin1')
const isEncrypted = 0x0001
const hasDescriptor = 0x0008
const hasUtf8Name = 0x0800
/** This value of a 32-bit field means that the actual value is in the zip64 extra field. */
const inZip64 = 0xffffffff
const stored = 0
const packings: ReadonlyMap<number, StreamCompression> = new Map([
  [8, 'deflate'],
  [93, 'zstd'],
])

/**
 * @param checksDirectory whether to throw also when the archive is truncated within its central directory, or when the
 * directory does not list all entries.
 * @throws CompressionDamage when the archive itself cannot be read further.
 */
export async function* readZipEntries(archive: ByteReader, { checksDirectory = false } = {}): AsyncGenerator<ZipEntry> {
  for (let entryCount = 0; ; entryCount++) {
    const signature = await peekSignature(archive)
    if (listHeaders.has(signature)) return checksDirectory ? checkDirectory(archive, entryCount) : undefined
    if (signature !== fileHeader) throw new CompressionDamage(`the zip archive is damaged at byte ${archive.position}`)
    const header = await readHeader(archive)
    const start = archive.position
    if (!header.name.endsWith('/')) yield { name: header.name, bytes: readContent(archive, header) }
    if (!header.isRead) await skipContent(archive, header, start)
  }
}

interface EntryHeader {
  readonly name: string
  readonly flags: number
  readonly method: number
  readonly crc: number
  /** Size of the packed content; null when only the data descriptor after the content contains the size. */
  readonly packedBytes: number | null
  readonly isZip64: boolean
  /** Whether the entry's content was read to its end. */
  isRead: boolean
}

async function readHeader(archive: ByteReader): Promise<EntryHeader> {
  const fixed = await archive.takeExactly(headerBytes, zipArchive)
  const flags = fixed.readUInt16LE(6)
  const name = await archive.takeExactly(fixed.readUInt16LE(26), zipArchive)
  const zip64 = findExtraField(await archive.takeExactly(fixed.readUInt16LE(28), zipArchive), zip64Field)
  const size32 = fixed.readUInt32LE(18)
  // The zip64 extra field starts with the unpacked size.
  const size = size32 === inZip64 && zip64 !== null && zip64.length >= 16 ? Number(zip64.readBigUInt64LE(8)) : size32
  const text = name.toString(flags & hasUtf8Name ? 'utf8' : 'latin1')
  return {
    name: text,
    flags,
    method: fixed.readUInt16LE(8),
    crc: fixed.readUInt32LE(14),
    packedBytes: flags & hasDescriptor && size === 0 && !text.endsWith('/') ? null : size,
    isZip64: zip64 !== null,
    isRead: false,
  }
}

function findExtraField(extra: Buffer, id: number): Buffer | null {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2))
    if (extra.readUInt16LE(at) === id) return extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2))
  return null
}

async function* readContent(archive: ByteReader, header: EntryHeader): AsyncGenerator<Buffer> {
  const { flags, method, crc } = header
  const packing = packings.get(method)
  if (flags & isEncrypted) throw new CompressionDamage('it is encrypted: unpack it with its password')
  if (method !== stored && packing === undefined)
    throw new CompressionDamage(`it is packed by method ${method} of zip: pack it again with deflate`)
  let sum = 0
  for await (const bytes of packing === undefined ? readStored(archive, header) : decompressBytes(archive, packing)) {
    sum = crc32(bytes, sum)
    yield bytes
  }
  const expected = flags & hasDescriptor ? await readDescriptorCrc(archive, header) : crc
  header.isRead = true
  if (sum !== expected) throw new CompressionDamage('it is damaged: its checksum does not match')
}

/**
 * Moves past an entry that was not read or is damaged.
 * @throws CompressionDamage when the entry's length is unknown, so that the next entry cannot be found.
 */
async function skipContent(archive: ByteReader, header: EntryHeader, start: number): Promise<void> {
  const left = header.packedBytes === null ? -1 : start + header.packedBytes - archive.position
  if (left < 0) throw new CompressionDamage('the zip archive does not say where its next file starts')
  await skipExactly(archive, left)
  if (header.flags & hasDescriptor) await readDescriptorCrc(archive, header)
}

async function* readStored(archive: ByteReader, { packedBytes }: EntryHeader): AsyncGenerator<Buffer> {
  if (packedBytes === null && (await archive.peek(8)).equals(emptyDescriptor)) return
  if (packedBytes === null) throw new CompressionDamage('it is stored without its length: pack it again with deflate')
  yield* takeChunks(archive, packedBytes)
}

/** Reads the data descriptor: an optional signature, the checksum and two lengths. */
async function readDescriptorCrc(archive: ByteReader, { isZip64 }: EntryHeader): Promise<number> {
  if ((await peekSignature(archive)) === dataDescriptor) await archive.take(4)
  const crc = (await archive.takeExactly(4, zipArchive)).readUInt32LE()
  // Not every writer says whether the lengths have 32 or 64 bits, so the position of the next header decides.
  const ahead = await archive.peek(16 + 4)
  const known = [8, 16].find(at => ahead.length >= at + 4 && isHeader(ahead.readUInt32LE(at)))
  await archive.takeExactly(known ?? (isZip64 ? 16 : 8), zipArchive)
  return crc
}

async function checkDirectory(archive: ByteReader, entryCount: number): Promise<void> {
  let listed = 0
  let isZip64 = false
  for (;;) {
    const signature = await peekSignature(archive)
    if (signature === directoryEntry) {
      const fixed = await archive.takeExactly(46, zipArchive)
      await skipExactly(archive, fixed.readUInt16LE(28) + fixed.readUInt16LE(30) + fixed.readUInt16LE(32))
      listed++
    } else if (signature === zip64End) {
      await skipExactly(archive, Number((await archive.takeExactly(12, zipArchive)).readBigUInt64LE(4)))
      isZip64 = true
    } else if (signature === zip64Locator) await skipExactly(archive, 20)
    else {
      const end = await archive.takeExactly(22, zipArchive)
      if (signature === directoryEnd && listed === entryCount && (isZip64 || end.readUInt16LE(10) === entryCount))
        return
      throw new CompressionDamage('the directory of the zip archive is damaged')
    }
  }
}

function isHeader(signature: number): boolean {
  return signature === fileHeader || listHeaders.has(signature)
}

async function peekSignature(archive: ByteReader): Promise<number> {
  const bytes = await archive.peek(4)
  if (bytes.length < 4) throw createTruncationError(zipArchive)
  return bytes.readUInt32LE()
}

async function* takeChunks(archive: ByteReader, count: number): AsyncGenerator<Buffer> {
  for (let left = count; left > 0; ) {
    const bytes = await archive.chunk(left)
    if (bytes === null) throw createTruncationError(zipArchive)
    left -= bytes.length
    yield bytes
  }
}

async function skipExactly(archive: ByteReader, count: number): Promise<void> {
  for await (const _ of takeChunks(archive, count));
}
