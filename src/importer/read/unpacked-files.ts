// Unpacks a file, however its compression and archives are nested, regardless of its name. Source: docs/wire/import.md
// §1.9.

import { basename } from 'node:path/posix'
import { ByteReader, CompressionDamage } from './byte-reader.ts'
import { decompressBytes, decompressGzipMembers } from './decompress.ts'
import type { RawPosition } from './read-record.ts'
import { readZipEntries } from './zip-entries.ts'

export interface UnpackedFile {
  /** See `RawPosition`: names inside archives follow after `!`. */
  readonly object: RawPosition['object']
  /** The unpacked file's bytes: read them before requesting the next file. They end early at damage. */
  readonly bytes: ByteReader
  /** Returns the damage that ended the bytes early; null if no damage was found so far. */
  readonly damage: () => CompressionDamage | null
  /** Whether the bytes are those of the file on the disk, unchanged. */
  readonly isUnpackedFile: boolean
}

/** Archives within archives are common, but deeper nesting is an attack or a mistake. */
const depthMax = 6
/** An archive of a few kilobytes can contain millions of files, or very long names. */
const filesMax = 100_000
const nameCharsMax = 32 * 1024 * 1024
const magicBytes = 6
const magics: readonly (readonly [name: string, magic: Buffer])[] = (
  [
    ['gzip', '\x1f\x8b\x08'],
    ['zstd', '\x28\xb5\x2f\xfd'],
    ['zip', 'PK\x03\x04'],
    ['zip', 'PK\x05\x06'],
    ['bzip2', 'BZh'],
    ['xz', '\xfd7zXZ\x00'],
    ['7-Zip', '7z\xbc\xaf\x27\x1c'],
    ['RAR', 'Rar!\x1a\x07'],
  ] as const
).map(([name, magic]) => [name, Buffer.from(magic, 'latin1')])

/** @param countMax how many files are read from an archive at most, including files in nested archives. */
export async function* unpackFiles(
  object: string,
  source: ByteReader,
  countMax = filesMax,
): AsyncGenerator<UnpackedFile> {
  let [count, nameChars] = [0, 0]
  for await (const file of unpackLayers(object, { bytes: source, damage: () => null }, 0)) {
    nameChars += file.object.length
    if (++count > countMax || nameChars > nameCharsMax) {
      const text = `it holds more files than the limit of ${(count - 1).toLocaleString('en')} per archive: unpack it, and import a part of them at a time`
      return yield createDamagedFile(object, new CompressionDamage(text))
    }
    yield file
  }
}

/** `damage` returns what was found so far in these bytes and in the compressed data around them. */
type Layer = Pick<UnpackedFile, 'bytes' | 'damage'>

async function* unpackLayers(object: string, { bytes, damage }: Layer, depth: number): AsyncGenerator<UnpackedFile> {
  const beginning = await bytes.peek(magicBytes)
  const packing = magics.find(([, magic]) => beginning.subarray(0, magic.length).equals(magic))?.[0]
  if (packing === undefined) yield { object, bytes, damage, isUnpackedFile: depth === 0 }
  else if (packing !== 'zip')
    yield* unpackLayers(object, stopAtDamage(decompressLayer(packing, bytes, depth), damage), depth + 1)
  else
    try {
      checkDepth(depth)
      yield* unpackEntries(object, { bytes, damage }, depth)
    } catch (error) {
      yield createDamagedFile(object, toCompressionDamage(error))
    }
}

async function* unpackEntries(object: string, { bytes, damage }: Layer, depth: number): AsyncGenerator<UnpackedFile> {
  for await (const entry of readZipEntries(bytes)) {
    const content = stopAtDamage(entry.bytes)
    if (!entry.name.split('/').some(isHiddenFile)) yield* unpackLayers(`${object}!${entry.name}`, content, depth + 1)
    // Reads the rest of the entry, to reach the next entry: the bytes after the files of a nested archive, or a whole
    // hidden file.
    for await (const _ of content.bytes);
    // The archive ends with its truncated entry, whose reject already reports that.
    if (content.damage()?.reason === 'truncated_record') return
  }
  // Checks again for damage: the compressed data around the archive may be truncated after the archive's last file.
  const found = damage()
  if (found !== null) throw found
}

/** Turns damage into an early end of the bytes. */
function stopAtDamage(source: AsyncIterable<Buffer>, damageBelow: Layer['damage'] = () => null): Layer {
  let found: CompressionDamage | null = null
  const upToDamage = async function* () {
    try {
      yield* source
    } catch (error) {
      found = toCompressionDamage(error)
    }
  }
  return { bytes: new ByteReader(upToDamage()), damage: () => damageBelow() ?? found }
}

async function* decompressLayer(packing: string, bytes: ByteReader, depth: number): AsyncGenerator<Buffer> {
  checkDepth(depth)
  if (packing === 'gzip') yield* decompressGzipMembers(bytes)
  else if (packing !== 'zstd')
    throw new CompressionDamage(`it is packed with ${packing}: pack it with gzip, zstd or zip`)
  else {
    yield* decompressBytes(bytes, 'zstd')
    if ((await bytes.peek(1)).length > 0) throw new CompressionDamage('data that is not zstd follows the zstd data')
  }
}

/** Whether the name is that of a hidden file, such as macOS and other programs add to folders and archives. */
export function isHiddenFile(name: string): boolean {
  return basename(name).startsWith('.') || name === '__MACOSX'
}

function createDamagedFile(object: string, damage: CompressionDamage): UnpackedFile {
  const bytes = new ByteReader((async function* () {})())
  return { object, bytes, damage: () => damage, isUnpackedFile: false }
}

function checkDepth(depth: number): void {
  if (depth >= depthMax) throw new CompressionDamage(`it is packed more than ${depthMax} times`)
}

function toCompressionDamage(error: unknown): CompressionDamage {
  if (error instanceof CompressionDamage) return error
  throw error
}
