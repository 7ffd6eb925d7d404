// Detects requests that name several hosts, which every port refuses with 400.

import type { IncomingMessage } from 'node:http'

/** Node keeps only the first host, but a proxy in front of it may have used another. Source: RFC 9112, 3.2. */
export function hasSeveralHosts({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === hostNameLength && name.toLowerCase() === 'host' && ++count > 1) return true
  }
  return false
}

const hostNameLength = 'host'.length
