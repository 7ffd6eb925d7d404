// Where a redirect may lead: what a server answers must not make the importer ask what only this machine can reach.

import { BlockList, isIP, type LookupFunction } from 'node:net'
import { FetchStop } from './fetch-faults.ts'

/** Who can be asked at an address. */
export type Reach = 'public' | 'private' | 'loopback' | 'link-local'

type Subnet = readonly [network: string, prefix: number]

const networks: Readonly<Record<Exclude<Reach, 'public'>, { v4: readonly Subnet[]; v6: readonly Subnet[] }>> = {
  'link-local': {
    v4: [['169.254.0.0', 16]],
    // The second one is what AWS says of a machine and its keys, as 169.254.169.254 does.
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
    // `::`, `::1` and IPv4 within IPv6 as it was written once.
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
    // A gateway between both protocols stands for all of IPv4.
    list.addSubnet(`64:ff9b::${network}`, 96 + prefix, 'ipv6')
  }
  for (const [network, prefix] of v6) list.addSubnet(network, prefix, 'ipv6')
  return { reach: reach as Reach, list }
})

/** IPv4 within IPv6 counts as what it stands for. */
export function reachOf(address: string): Reach {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  return lists.find(({ list }) => list.check(address, family))?.reach ?? 'public'
}

/** Where a request goes, and how the name of it becomes an address. */
export interface Hop {
  readonly url: URL
  readonly lookup: LookupFunction
}

export interface Redirecting {
  /** Who redirects. */
  readonly from: URL
  /** The address at which it was reached. */
  readonly reach: Reach
  /** Finds the addresses of a name. */
  readonly lookup: LookupFunction
  /** Told of an address of a private network, which may be meant. */
  readonly warn: (line: string) => void
}

/**
 * @returns the hop that a redirect leads to. The address of a name is judged as the connection takes it: whoever owns a
 *   name may say something else when asked again.
 * @throws FetchStop for a redirect that is not followed.
 */
export function redirectedTo(location: string, redirecting: Redirecting): Hop {
  const { from, lookup } = redirecting
  const url = URL.parse(location, from.href)
  if (url === null) throw new FetchStop(`${from.host} redirects to something that is no address.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address of ${url.protocol}, which is not followed.`)
  if (from.protocol === 'https:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address without encryption, which is not followed.`)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const refusal = isIP(host) === 0 ? null : judged(host, url, redirecting)
  if (refusal !== null) throw refusal
  return {
    url,
    lookup: (name, options, callback) =>
      lookup(name, options, (error, found, family) => {
        const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address)
        const refusals = addresses.map(address => judged(address, url, redirecting)).filter(each => each !== null)
        callback(refusals[0] ?? error, found, family)
      }),
  }
}

/** @returns why the address is not asked; null when it is. */
function judged(address: string, to: URL, { from, reach: fromReach, warn }: Redirecting): FetchStop | null {
  const reach = reachOf(address)
  // What the user named may send its visitors to itself, as long as it does not turn into another machine.
  const isSame = from.hostname === to.hostname && fromReach === reach
  if (reach === 'link-local' || (reach === 'loopback' && !isSame))
    return new FetchStop(
      `${from.host} redirects to ${to.host}, an address of this machine or its own network link, which is not followed.`,
    )
  if (reach === 'private' && !isSame)
    warn(`${from.host} redirects to ${to.host} (${address}), in a private network that only some machines can reach.`)
  return null
}
