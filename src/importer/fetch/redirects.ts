// Where a redirect may lead: what a server answers must not make the importer ask what only this machine can reach.

import { BlockList, isIP, type LookupFunction } from 'node:net'
import { FetchStop } from './fetch-faults.ts'

const local = new BlockList()
local.addSubnet('127.0.0.0', 8)
local.addAddress('0.0.0.0')
local.addSubnet('169.254.0.0', 16)
local.addAddress('::1', 'ipv6')
local.addAddress('::', 'ipv6')
local.addSubnet('fe80::', 10, 'ipv6')

/** Where a request goes, and how the name of it becomes an address. */
export interface Hop {
  readonly url: URL
  readonly lookup: LookupFunction
}

/**
 * @param isFromLocal whether the redirecting server was reached at a local address itself; what the user names may be one.
 * @returns the hop that a redirect leads to; names of it are refused where they are found to be local.
 * @throws FetchStop for a redirect that is not followed.
 */
export function redirectedTo(location: string, { url: from, lookup }: Hop, isFromLocal: boolean): Hop {
  const url = URL.parse(location, from.href)
  if (url === null) throw new FetchStop(`${from.host} redirects to something that is no address.`)
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address of ${url.protocol}, which is not followed.`)
  if (from.protocol === 'https:' && url.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address without encryption, which is not followed.`)
  if (isFromLocal) return { url, lookup }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) !== 0 && isLocalAddress(host)) throw leadsHere(from, url)
  return { url, lookup: lookupElsewhere(leadsHere(from, url), lookup) }
}

/**
 * The address is looked at as the connection takes it: whoever owns a name may say something else when asked again.
 * @param refusal of a local address.
 */
function lookupElsewhere(refusal: FetchStop, lookup: LookupFunction): LookupFunction {
  return (name, options, callback) =>
    lookup(name, options, (error, found, family) => {
      const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address)
      callback(addresses.some(isLocalAddress) ? refusal : error, found, family)
    })
}

/** IPv4 within IPv6 counts as what it stands for. */
export function isLocalAddress(address: string): boolean {
  return isIP(address) !== 0 && local.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function leadsHere(from: URL, to: URL): FetchStop {
  return new FetchStop(
    `${from.host} redirects to ${to.host}, an address of this machine or its own network link, which is not followed.`,
  )
}
