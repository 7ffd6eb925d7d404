// Converts the text of an address to bytes, for addresses that can have a location. Private, loopback, link-local and other
// special addresses have no location, even if a database has one for them.

import { BlockList, isIP } from 'node:net'

/** The longest text of an IPv6 address, plus a `%zone`. */
const textLengthMax = 64

/**
 * Addresses that are not globally reachable, or not of a host. Source: the special-purpose address registries of RFC 6890.
 */
const special = new BlockList()
for (const [address, prefixBits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
  ['::', 96], // `::`, `::1`, and the corner in which database files keep IPv4
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  special.addSubnet(address, prefixBits, isIP(address) === 4 ? 'ipv4' : 'ipv6')

/**
 * @returns the 4 or 16 bytes of a public address; 4 bytes also for an IPv4 address in IPv6 notation (`::ffff:1.2.3.4`).
 * Null when the text is not a public address. Source: docs/wire/ingestion.md 7, "private like any other";
 * docs/wire/evaluation.md 6.
 */
export function parsePublicAddress(text: string): Uint8Array | null {
  if (text.length > textLengthMax) return null
  const family = isIP(text)
  if (family === 0) return null
  const [address = ''] = text.split('%', 1) // without its zone
  const whole = family === 4 ? parseIpv4(address) : parseIpv6(address)
  const bytes = isMappedIpv4(whole) ? whole.slice(12) : whole
  const isSpecial = bytes.length === 4 ? special.check(bytes.join('.'), 'ipv4') : special.check(address, 'ipv6')
  return isSpecial ? null : bytes
}

/** @param text IPv4 according to `isIP`. */
function parseIpv4(text: string): Uint8Array {
  return Uint8Array.from(text.split('.'), Number)
}

/** @param text IPv6 according to `isIP`, without a zone. */
function parseIpv6(text: string): Uint8Array {
  const [head = '', tail] = text.split('::')
  const first = parseIpv6Part(head)
  const last = tail === undefined ? [] : parseIpv6Part(tail)
  const bytes = new Uint8Array(16)
  bytes.set(first)
  bytes.set(last, 16 - last.length)
  return bytes
}

/** `2001:db8:1.2.3.4` → bytes. */
function parseIpv6Part(part: string): number[] {
  if (part === '') return []
  return part.split(':').flatMap(piece => {
    if (piece.includes('.')) return [...parseIpv4(piece)]
    const value = Number.parseInt(piece, 16)
    return [value >> 8, value & 0xff]
  })
}

function isMappedIpv4(bytes: Uint8Array): boolean {
  return (
    bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff && bytes.subarray(0, 10).every(byte => byte === 0)
  )
}
