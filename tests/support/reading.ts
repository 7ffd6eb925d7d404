import { BlobWriter, Uint8ArrayReader, ZipWriter, type ZipWriterConstructorOptions } from '@zip.js/zip.js'
import { ByteReader, type CompressionDamage } from '#importer/read/byte-reader.ts'
import type { ParsedSourceRecord } from '#importer/read/parse-record.ts'
import type { UnpackedFile } from '#importer/read/unpacked-files.ts'

export interface UnpackedFileOptions {
  readonly object?: string
  readonly damage?: CompressionDamage | undefined
  /** Where chunks end, in any order; or the size of each. */
  readonly cuts?: readonly number[] | number
}

/** A file for the readers of records, without a file on the disk. */
export function unpackedFile(
  bytes: Buffer,
  { object = 'file', damage, cuts = [] }: UnpackedFileOptions = {},
): UnpackedFile {
  const chunks = new ByteReader(cutInto(bytes, cuts))
  return { object, bytes: chunks, damage: () => damage ?? null, isUnpackedFile: true }
}

/** The bytes in chunks, which may be empty. */
export async function* cutInto(bytes: Buffer, cuts: readonly number[] | number): AsyncGenerator<Buffer> {
  const size = typeof cuts === 'number' ? cuts : bytes.length
  const ends = typeof cuts === 'number' ? [] : cuts.filter(at => at < bytes.length).toSorted((a, b) => a - b)
  let start = 0
  for (const end of ends) {
    yield bytes.subarray(start, end)
    start = end
  }
  for (; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

/** The value of a record, or why it has none. */
export function outcomeOf(parsed: ParsedSourceRecord) {
  return 'value' in parsed ? parsed.value : 'skipped' in parsed ? parsed.skipped : parsed.rejected.reason
}

/** The detail of a reject; empty for anything else. */
export function detailOf({ parsed }: { readonly parsed: ParsedSourceRecord }): string {
  return ('rejected' in parsed && parsed.rejected.detail) || ''
}

/** A number that is not negative as Avro and Thrift encode it: zigzag, seven bits to a byte. */
export function zigzag(value: bigint | number): number[] {
  const bytes: number[] = []
  let left = BigInt(value) * 2n
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80)
  return [...bytes, Number(left)]
}

export async function zipFiles(
  files: Readonly<Record<string, Buffer | string>>,
  options: ZipWriterConstructorOptions = {},
): Promise<Buffer> {
  const zip = new ZipWriter(new BlobWriter(), { useWebWorkers: false, ...options })
  for (const [name, bytes] of Object.entries(files)) await zip.add(name, new Uint8ArrayReader(Buffer.from(bytes)))
  return Buffer.from(await (await zip.close()).arrayBuffer())
}
