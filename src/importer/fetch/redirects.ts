// Where a redirect may lead: a server must not make the importer send requests that only this machine can send.

import { BlockList, isIP, type LookupFunction } from 'node:net'
import { FetchStop } from './fetch-faults.ts'

/** The kind of network that an address belongs to. */
export type Reach = 'public' | 'private' | 'loopback' | 'link-local'

type Subnet = readonly [network: string, prefix: number]

const networks: Readonly<Record<Exclude<Reach, 'public'>, { v4: readonly Subnet[]; v6: readonly Subnet[] }>> = {
  'link-local': {
    v4: [['169.254.0.0', 16]],
    // The second network has AWS's instance metadata and credentials, as 169.254.169.254 does.
    v6: [
      ['fe80::', 10],
      ['fd00:ec2::', 32],
    ],
  },
  loopback: {
    v4: [
      ['127.0.0.0', 8],
      ['0.0.0.0', 8],
    ],
    // `::`, `::1` and the deprecated IPv4-compatible addresses.
    v6: [['::', 96]],
  },
  private: {
    v4: [
      ['10.0.0.0', 8],
      ['172.16.0.0', 12],
      ['192.168.0.0', 16],
      ['100.64.0.0', 10],
    ],
    v6: [
      ['fc00::', 7],
      ['fec0::', 10],
    ],
  },
}

const lists = Object.entries(networks).map(([reach, { v4, v6 }]) => {
  const list = new BlockList()
  for (const [network, prefix] of v4) {
    list.addSubnet(network, prefix)
    // A NAT64 gateway maps all of IPv4 to this prefix.
    list.addSubnet(`64:ff9b::${network}`, 96 + prefix, 'ipv6')
  }
  for (const [network, prefix] of v6) list.addSubnet(network, prefix, 'ipv6')
  return { reach: reach as Reach, list }
})

/** An IPv4 address within IPv6 counts as that IPv4 address. */
export function classifyAddress(address: string): Reach {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  return lists.find(({ list }) => list.check(address, family))?.reach ?? 'public'
}

/** The URL of a request, and the resolver for its host name. */
export interface Hop {
  readonly url: URL
  readonly lookup: LookupFunction
}

export interface Redirecting {
  /** The URL that redirects. */
  readonly from: URL
  /** Of the address that responded for `from`. */
  readonly reach: Reach
  readonly lookup: LookupFunction
  /** Receives a warning about a private address, which is followed, since it may be intended. */
  readonly warn: (line: string) => void
}

/**
 * @returns the hop that a redirect leads to. Its `lookup` checks the addresses that the connection uses: the owner of a
 *   name may return other addresses when it is resolved again (DNS rebinding).
 * @throws FetchStop for a redirect that is not followed.
 */
export function resolveRedirect(location: string, redirecting: Redirecting): Hop {
  const { from, lookup } = redirecting
  const url = URL.parse(location, from.href)
  if (url === null) throw new FetchStop(`${from.host} redirects to something that is no address.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address of ${url.protocol}, which is not followed.`)
  if (from.protocol === 'https:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address without encryption, which is not followed.`)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const refusal = isIP(host) === 0 ? null : findRedirectRefusal(host, url, redirecting)
  if (refusal !== null) throw refusal
  return {
    url,
    lookup: (name, options, callback) =>
      lookup(name, options, (error, found, family) => {
        const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address)
        const refusals = addresses
          .map(address => findRedirectRefusal(address, url, redirecting))
          .filter(each => each !== null)
        callback(refusals[0] ?? error, found, family)
      }),
  }
}

/** @returns the refusal of an address; null when it is allowed. */
function findRedirectRefusal(
  address: string,
  to: URL,
  { from, reach: fromReach, warn }: Redirecting,
): FetchStop | null {
  const reach = classifyAddress(address)
  // A host may redirect to itself as long as its address stays in the same kind of network.
  const isSame = from.hostname === to.hostname && fromReach === reach
  if (reach === 'link-local' || (reach === 'loopback' && !isSame))
    return new FetchStop(
      `${from.host} redirects to ${to.host}, an address of this machine or its own network link, which is not followed.`,
    )
  if (reach === 'private' && !isSame)
    warn(`${from.host} redirects to ${to.host} (${address}), in a private network that only some machines can reach.`)
  return null
}
