// Finds the client's address of a request from its headers and its connection.

import { isIP } from 'node:net'
import type { TrustedProxies } from './trusted-proxies.ts'

export type RequestHeaders = { readonly [name: string]: string | readonly string[] | undefined }

/** More entries than any chain of proxies adds; the rest of a longer header is ignored. */
const entriesMax = 32

/**
 * The address whose location an evaluation sees: the left-most entry that parses in the header literally named
 * `HTTP_X_FORWARDED_FOR`, then in `X-Forwarded-For`; else the connection's address. Believed from any client, since it only
 * changes the caller's own evaluation; never used for limits, logs or `$ip`. '' when none of these is an address. Source:
 * docs/wire/service.md §4.1; docs/wire/evaluation.md 1.6.
 */
export function findGeoipAddress(headers: RequestHeaders, socketAddress: string | undefined): string {
  return (
    findLeftMostAddress(headers.http_x_forwarded_for) ??
    findLeftMostAddress(headers['x-forwarded-for']) ??
    parseAddress(socketAddress ?? '') ??
    ''
  )
}

/**
 * The address that is stored as `$ip` and used for limits and logs: the forwarded address when the peer is a trusted proxy,
 * else the peer's address. IPv4 is never written as IPv6. '' when unknown. Source: docs/wire/ingestion.md 1.3.
 */
export function findClientAddress(
  headers: RequestHeaders,
  socketAddress: string | undefined,
  trustedProxies: TrustedProxies,
): string {
  const peer = removeIpv4Mapping(socketAddress ?? '')
  const literal = headers.http_x_forwarded_for
  const usual = headers['x-forwarded-for']
  if ((literal === undefined && usual === undefined) || !trustedProxies.trusts(peer)) return peer
  const forwarded = findLeftMostAddress(literal) ?? findLeftMostAddress(usual)
  return forwarded === null ? peer : removeIpv4Mapping(forwarded)
}

/** What counts as one sender: an IPv4 address, or the first 64 bits of an IPv6 address, which one machine may own. */
export function findSenderNetwork(address: string): string {
  return isIP(address) === 6 ? formatIpv6Prefix(address, 4) : address
}

/**
 * The block of addresses that is usually assigned together: 24 bits of an IPv4 address, 48 bits of an IPv6 address. It may
 * include other senders, so use it to serve senders in turn, not to refuse requests. Text that is not an address is
 * returned unchanged.
 */
export function findAddressBlock(address: string): string {
  const version = isIP(address)
  if (version === 6) return formatIpv6Prefix(address, 3)
  return version === 4 ? `${address.slice(0, address.lastIndexOf('.'))}.0/24` : address
}

function formatIpv6Prefix(address: string, groupCount: number): string {
  const [front = '', back] = address.split('::')
  const groups = front === '' ? [] : front.split(':')
  if (back !== undefined) {
    const behind = back === '' ? [] : back.split(':')
    while (groups.length + behind.length < 8) groups.push('0')
    groups.push(...behind)
  }
  return `${groups
    .slice(0, groupCount)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/${16 * groupCount}`
}

/** Turns `::ffff:1.2.3.4` into 1.2.3.4 and removes the name of an interface (`%eth0`). */
export function removeIpv4Mapping(address: string): string {
  if (!address.includes(':')) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped !== null) return mapped[1]!
  const zone = address.indexOf('%')
  return zone === -1 ? address : address.slice(0, zone)
}

/** The left-most entry of a forwarding header that parses as an address. */
export function findLeftMostAddress(header: string | readonly string[] | undefined): string | null {
  if (header === undefined) return null
  const text = typeof header === 'string' ? header : header.join(',')
  for (const entry of text.split(',', entriesMax)) {
    const address = parseAddress(entry)
    if (address !== null) return address
  }
  return null
}

/** One entry (`1.2.3.4:80`, `[::1]:80`), trimmed, without port and brackets; null when it is not an address. */
export function parseAddress(entry: string): string | null {
  const text = entry.trim()
  if (isIP(text) !== 0) return text
  const bracketed = /^\[([0-9a-fA-F:.]{2,45})\](?::\d{1,5})?$/.exec(text)
  const bare = bracketed?.[1] ?? /^(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}$/.exec(text)?.[1]
  return bare !== undefined && isIP(bare) !== 0 ? bare : null
}
