// The 512-byte header of each file in a tar, in the POSIX format (ustar), with GNU's form for sizes from 8 GiB up:
// `tar` on any system unpacks it.

export const blockBytes = 512

export interface TarHeader {
  /** Relative, of printable ASCII, up to 255 characters. */
  readonly name: string
  readonly size: number
}

/** @throws Error when the name cannot be written. */
export function encodeTarHeader({ name, size }: TarHeader, mtimeMs: number): Buffer {
  const header = Buffer.alloc(blockBytes)
  const { prefix, rest } = splitName(name)
  header.write(rest, 0, 'latin1')
  header.write('0000600\0', 100, 'latin1')
  header.write(`${octal(0, 7)}\0${octal(0, 7)}\0`, 108, 'latin1')
  if (size < 8 ** 11) header.write(`${octal(size, 11)}\0`, 124, 'latin1')
  else {
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  header.write(`${octal(Math.floor(mtimeMs / 1000), 11)}\0`, 136, 'latin1')
  header.write('0', 156, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  header.write(prefix, 345, 'latin1')
  header.write(`${octal(checksumOf(header), 6)}\0 `, 148, 'latin1')
  return header
}

/** @returns null at the end of the archive; 'damaged' when it is not the header of a plain file. */
export function decodeTarHeader(header: Buffer): TarHeader | 'damaged' | null {
  if (header.every(byte => byte === 0)) return null
  if (Number.parseInt(text(header, 148, 8), 8) !== checksumOf(header)) return 'damaged'
  if (header[156] !== 0x30 || text(header, 257, 5) !== 'ustar') return 'damaged'
  const prefix = text(header, 345, 155)
  const size = header[124] === 0x80 ? Number(header.readBigUInt64BE(128)) : Number.parseInt(text(header, 124, 12), 8)
  if (!Number.isSafeInteger(size)) return 'damaged'
  return { name: `${prefix === '' ? '' : `${prefix}/`}${text(header, 0, 100)}`, size }
}

/** The padding between a file of this size and the next header. */
export function paddingOf(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes
}

function splitName(name: string): { prefix: string; rest: string } {
  if (!/^[\x21-\x7e]+$/.test(name)) throw new Error(`the name ${JSON.stringify(name)} cannot stand in a tar`)
  if (name.length <= 100) return { prefix: '', rest: name }
  // The last slash that leaves both parts short enough.
  const slash = name.indexOf('/', name.length - 101)
  if (slash === -1 || slash > 155) throw new Error(`the name ${name} is too long for a tar`)
  return { prefix: name.slice(0, slash), rest: name.slice(slash + 1) }
}

/** The sum of all bytes, its own eight counted as blanks. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < blockBytes; at++) if (at < 148 || at >= 156) sum += header[at]!
  return sum
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}

function text(header: Buffer, at: number, bytes: number): string {
  const field = header.subarray(at, at + bytes)
  const end = field.indexOf(0)
  return field.toString('latin1', 0, end === -1 ? bytes : end)
}
