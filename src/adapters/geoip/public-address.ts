// The text of an address → its bytes, for addresses that can have a place on the map. Private, loopback, link-local and
// other special ones have none, whatever a database says of them.

import { isIP } from 'node:net'

/** The longest text of an IPv6 address, and room for a `%zone`. */
const textLengthMax = 64

type Range = readonly [leadingBytes: readonly number[], bits: number]

/** Not reachable from elsewhere, or no host. Source: the special-purpose address registries of RFC 6890. */
const specialIpv4: readonly Range[] = [
  [[0], 8],
  [[10], 8],
  [[100, 64], 10],
  [[127], 8],
  [[169, 254], 16],
  [[172, 16], 12],
  [[192, 0, 0], 24],
  [[192, 0, 2], 24],
  [[192, 168], 16],
  [[198, 18], 15],
  [[198, 51, 100], 24],
  [[203, 0, 113], 24],
  [[224], 3],
]
const specialIpv6: readonly Range[] = [
  // `::`, `::1`, and the corner in which database files keep IPv4.
  [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 96],
  [[0x00, 0x64, 0xff, 0x9b, 0x00, 0x01], 48],
  [[0x01, 0x00, 0, 0, 0, 0, 0, 0], 64],
  [[0x20, 0x01, 0x0d, 0xb8], 32],
  [[0x3f, 0xff, 0x00], 20],
  [[0xfc], 7],
  [[0xfe, 0x80], 10],
  [[0xfe, 0xc0], 10],
  [[0xff], 8],
]

/**
 * 4 or 16 bytes; an IPv4 address in IPv6 notation (`::ffff:1.2.3.4`) is 4. Null when it is no address, or no public one.
 * Source: docs/wire/ingestion.md 7, "private like any other"; docs/wire/evaluation.md 6.
 */
export function publicAddress(text: string): Uint8Array | null {
  if (text.length > textLengthMax) return null
  const family = isIP(text)
  if (family === 0) return null
  if (family === 4) return unlessSpecial(ipv4Bytes(text), specialIpv4)
  const bytes = ipv6Bytes(text)
  return isMappedIpv4(bytes) ? unlessSpecial(bytes.slice(12), specialIpv4) : unlessSpecial(bytes, specialIpv6)
}

function unlessSpecial(bytes: Uint8Array, ranges: readonly Range[]): Uint8Array | null {
  return ranges.some(range => isInRange(bytes, range)) ? null : bytes
}

function isInRange(bytes: Uint8Array, [leading, bits]: Range): boolean {
  let bitsLeft = bits
  for (let index = 0; bitsLeft > 0; index++, bitsLeft -= 8) {
    const shift = Math.max(0, 8 - bitsLeft)
    if (bytes[index]! >> shift !== (leading[index] ?? 0) >> shift) return false
  }
  return true
}

/** @param text what `isIP` knows as IPv4. */
function ipv4Bytes(text: string): Uint8Array {
  return Uint8Array.from(text.split('.'), Number)
}

/** @param text what `isIP` knows as IPv6. */
function ipv6Bytes(text: string): Uint8Array {
  const zone = text.indexOf('%')
  const [head = '', tail] = (zone === -1 ? text : text.slice(0, zone)).split('::')
  const first = partBytes(head)
  const last = tail === undefined ? [] : partBytes(tail)
  const bytes = new Uint8Array(16)
  bytes.set(first)
  bytes.set(last, 16 - last.length)
  return bytes
}

/** `2001:db8:1.2.3.4` → bytes. */
function partBytes(part: string): number[] {
  if (part === '') return []
  return part.split(':').flatMap(piece => {
    if (piece.includes('.')) return [...ipv4Bytes(piece)]
    const value = Number.parseInt(piece, 16)
    return [value >> 8, value & 0xff]
  })
}

function isMappedIpv4(bytes: Uint8Array): boolean {
  return bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every(byte => byte === 0)
}
