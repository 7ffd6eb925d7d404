// Which peers are proxies whose forwarding headers are believed. Parsed once from `PENNON_TRUSTED_PROXIES`;
// `client-address.ts` reads the headers.

import { BlockList, isIP } from 'node:net'
import { err, ok, type Result } from '#core/result.ts'

export interface TrustedProxies {
  /** @param address the peer's address as text; an IPv4 address must not be mapped into IPv6. */
  trusts(address: string): boolean
}

type Range = readonly [address: string, prefixBits: number]

const namedRanges: ReadonlyMap<string, readonly Range[]> = new Map<string, readonly Range[]>([
  [
    'loopback',
    [
      ['127.0.0.0', 8],
      ['::1', 128],
    ],
  ],
  [
    'private',
    [
      ['10.0.0.0', 8],
      ['172.16.0.0', 12],
      ['192.168.0.0', 16],
      ['169.254.0.0', 16],
      ['fc00::', 7],
      ['fe80::', 10],
    ],
  ],
])

/** How many peers' results are remembered: a check costs more than the rest of reading an address. */
const rememberedPeerCountMax = 1_000

/**
 * @param setting `loopback`, `private`, addresses and CIDR ranges, separated by commas; empty trusts no peer.
 * @returns err with the first invalid entry.
 * Source: docs/wire/ingestion.md 1.3.
 */
export function parseTrustedProxies(setting: string): Result<TrustedProxies, string> {
  const ranges = new BlockList()
  for (const entry of setting.split(',').map(text => text.trim())) {
    if (entry === '') continue
    const named = namedRanges.get(entry.toLowerCase())
    const parsed = named ?? parseRange(entry)
    if (parsed === null) return err(entry)
    for (const [address, prefixBits] of parsed) ranges.addSubnet(address, prefixBits, detectFamily(address))
  }
  const remembered = new Map<string, boolean>()
  return ok({
    trusts(address) {
      let trusted = remembered.get(address)
      if (trusted === undefined) {
        trusted = isIP(address) !== 0 && ranges.check(address, detectFamily(address))
        if (remembered.size >= rememberedPeerCountMax) remembered.clear()
        remembered.set(address, trusted)
      }
      return trusted
    },
  })
}

function parseRange(entry: string): readonly Range[] | null {
  const [address = '', prefix, ...rest] = entry.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return null
  const bitsMax = version === 4 ? 32 : 128
  if (prefix === undefined) return [[address, bitsMax]]
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= bitsMax ? [[address, Number(prefix)]] : null
}

function detectFamily(address: string): 'ipv4' | 'ipv6' {
  return address.includes(':') ? 'ipv6' : 'ipv4'
}
