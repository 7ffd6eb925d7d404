// The part of a page's host that its subdomains share, according to the public suffix list. Only suffixes of registries
// count: `team.github.io` is a subdomain of `github.io`. Source: docs/wire/ingestion.md 13.

import { isIPv4, isIPv6 } from 'node:net'
import { getDomain } from 'tldts-icann'
import { detachSubstring } from '../detach-substring.ts'

const knownMax = 1_000
/** A cache: consecutive calls are usually about pages of one site. */
const known = new Map<string, string>()

/**
 * @param host a host, with or without port, or the address of a page.
 * @returns '' for ''; a text that is not a host is returned unchanged.
 */
export function findRootDomain(host: string): string {
  const found = known.get(host)
  if (found !== undefined) return found
  const root = computeRootDomain(host)
  if (host.length > 300) return root
  if (known.size >= knownMax) known.clear()
  known.set(detachSubstring(host), detachSubstring(root))
  return root
}

function computeRootDomain(host: string): string {
  if (host === '') return ''
  const text = isIPv6(host) ? `[${host}]` : host
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null || url.hostname === '') return host
  const port = url.port === '' ? '' : `:${url.port}`
  const name = url.hostname.toLowerCase()
  if (name === 'localhost') return `127.0.0.1${port}`
  if (name.startsWith('[') || isIPv4(name)) return name + port
  return (getDomain(name, { extractHostname: false, validateHostname: false }) ?? name) + port
}
