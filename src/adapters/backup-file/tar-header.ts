// The 512-byte header of each file in a tar, in the POSIX format (ustar), with GNU's form for sizes from 8 GiB up:
// `tar` on any system unpacks it.

export const blockBytes = 512

export interface TarHeader {
  /** A name that `isBackupName` accepts. */
  readonly name: string
  readonly size: number
}

/** The message completes a sentence for operators that begins with the file's name. */
export class UnfitNameError extends Error {}

/**
 * Whether a backup may contain a file of this name. Its writer and its reader both check this: the name must be a relative
 * path that stays inside its folder, of printable ASCII, up to 255 characters. A backslash is refused, since `SHA256SUMS`
 * would escape it. The event store writes any other character of a column's name as `%` and two digits.
 */
export function isBackupName(name: string): boolean {
  const parts = name.split('/')
  return (
    parts.every(part => /^[\x21-\x5b\x5d-\x7e]+$/.test(part) && part !== '.' && part !== '..') &&
    splitName(name) !== null
  )
}

/** @throws UnfitNameError */
export function encodeTarHeader({ name, size }: TarHeader, mtimeMs: number): Buffer {
  const split = isBackupName(name) ? splitName(name) : null
  if (split === null) throw new UnfitNameError(`cannot contain a file named ${JSON.stringify(name)}`)
  const header = Buffer.alloc(blockBytes)
  const { prefix, rest } = split
  header.write(rest, 0, 'latin1')
  header.write('0000600\0', 100, 'latin1')
  header.write(`${encodeOctal(0, 7)}\0${encodeOctal(0, 7)}\0`, 108, 'latin1')
  if (size < 8 ** 11) header.write(`${encodeOctal(size, 11)}\0`, 124, 'latin1')
  else {
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  header.write(`${encodeOctal(Math.floor(mtimeMs / 1000), 11)}\0`, 136, 'latin1')
  header.write('0', 156, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  header.write(prefix, 345, 'latin1')
  header.write(`${encodeOctal(computeChecksum(header), 6)}\0 `, 148, 'latin1')
  return header
}

/** @returns null at the end of the archive; 'damaged' when the block is not the header of a plain file. */
export function decodeTarHeader(header: Buffer): TarHeader | 'damaged' | null {
  if (header.every(byte => byte === 0)) return null
  if (Number.parseInt(readText(header, 148, 8), 8) !== computeChecksum(header)) return 'damaged'
  if (header[156] !== 0x30 || readText(header, 257, 5) !== 'ustar') return 'damaged'
  const prefix = readText(header, 345, 155)
  const size =
    header[124] === 0x80 ? Number(header.readBigUInt64BE(128)) : Number.parseInt(readText(header, 124, 12), 8)
  if (!Number.isSafeInteger(size)) return 'damaged'
  return { name: `${prefix === '' ? '' : `${prefix}/`}${readText(header, 0, 100)}`, size }
}

/** The padding between a file of this size and the next header. */
export function countPaddingBytes(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes
}

/** @returns null when the name is too long for a tar. */
function splitName(name: string): { prefix: string; rest: string } | null {
  if (name.length <= 100) return { prefix: '', rest: name }
  // The first slash after which at most 100 characters follow.
  const slash = name.indexOf('/', name.length - 101)
  return slash === -1 || slash > 155 ? null : { prefix: name.slice(0, slash), rest: name.slice(slash + 1) }
}

/** The sum of all bytes of the header, where the eight bytes of the checksum itself count as spaces. */
function computeChecksum(header: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < blockBytes; at++) if (at < 148 || at >= 156) sum += header[at]!
  return sum
}

function encodeOctal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}

function readText(header: Buffer, at: number, bytes: number): string {
  const field = header.subarray(at, at + bytes)
  const end = field.indexOf(0)
  return field.toString('latin1', 0, end === -1 ? bytes : end)
}
