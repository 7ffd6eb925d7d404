// Where a redirect may lead: what a server answers must not make the importer ask what only this machine can reach.

import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { FetchStop } from './fetch-faults.ts'

const local = new BlockList()
local.addSubnet('127.0.0.0', 8)
local.addAddress('0.0.0.0')
local.addSubnet('169.254.0.0', 16)
local.addAddress('::1', 'ipv6')
local.addAddress('::', 'ipv6')
local.addSubnet('fe80::', 10, 'ipv6')

/** @returns the address that a redirect leads to. @throws FetchStop for one that is not followed. */
export async function redirectedTo(location: string, from: URL): Promise<URL> {
  const next = URL.parse(location, from.href)
  if (next === null) throw new FetchStop(`${from.host} redirects to something that is no address.`)
  if (next.protocol !== 'http:' && next.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address of ${next.protocol}, which is not followed.`)
  if (from.protocol === 'https:' && next.protocol !== 'https:')
    throw new FetchStop(`${from.host} redirects to an address without encryption, which is not followed.`)
  if (next.hostname !== from.hostname && (await isLocal(next)) && !(await isLocal(from)))
    throw new FetchStop(
      `${from.host} redirects to ${next.host}, an address of this machine or its own network link, which is not followed.`,
    )
  return next
}

async function isLocal({ hostname }: URL): Promise<boolean> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) !== 0) return isLocalAddress(host)
  try {
    return (await lookup(host, { all: true })).some(({ address }) => isLocalAddress(address))
  } catch {
    // Nothing is asked of a name without an address, and asking tells of that in its own words.
    return false
  }
}

/** IPv4 within IPv6 counts as what it stands for. */
export function isLocalAddress(address: string): boolean {
  return local.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
