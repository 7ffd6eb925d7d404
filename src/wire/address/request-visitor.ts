// Reads what identifies a visitor without cookies from the headers and the connection of an evaluation.

import type { RequestVisitor } from '#core/flags/evaluation/evaluation-request.ts'
import { findClientAddress, type RequestHeaders } from './client-address.ts'
import type { TrustedProxies } from './trusted-proxies.ts'

/**
 * Gives the address of `findClientAddress`, which is stored with events, rather than `findGeoipAddress`. If `Origin` is absent or
 * `null`, the host comes from `Referer`. Source: docs/wire/evaluation.md 1.7.
 */
export function readVisitorFromHeaders(
  headers: RequestHeaders,
  socketAddress: string | undefined,
  trustedProxies: TrustedProxies,
): RequestVisitor {
  const origin = readHeaderText(headers.origin)
  return {
    address: findClientAddress(headers, socketAddress, trustedProxies),
    host: origin === '' || origin === 'null' ? removePath(readHeaderText(headers.referer)) : origin,
    userAgent: readHeaderText(headers['user-agent']),
  }
}

function readHeaderText(header: RequestHeaders[string]): string {
  return typeof header === 'string' ? header : ''
}

/** Gives all pages of a site the same text, so that the site's root domain is computed once. */
function removePath(address: string): string {
  return /^[a-z][a-z0-9+.-]{0,30}:\/\/[^/?#]*/i.exec(address)?.[0] ?? address
}
