// The cookie of a session, and how a request shows that a page of this instance sent it.

import type { FastifyRequest } from 'fastify'
import { sessionLimits } from '#core/users/session.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import type { GetBaseUrl } from './base-url.ts'

/**
 * The name of the cookie. Browsers keep cookies by host, not by port, so instances on one host need different names.
 * @param logId null before the instance has a log, when it does not serve yet.
 */
export function createSessionCookieName(logId: string | null): string {
  return `pennon_session_${(logId ?? 'unstarted').slice(0, 8)}`
}

/** The secret in the request's cookie; null without the cookie. */
export function readSessionSecret({ headers }: Pick<FastifyRequest, 'headers'>, cookieName: string): string | null {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const at = pair.indexOf('=')
    if (at !== -1 && pair.slice(0, at).trim() === cookieName) return pair.slice(at + 1).trim()
  }
  return null
}

/**
 * The value of `Set-Cookie`. `Strict` hides the cookie from requests that other sites cause; links from elsewhere still
 * work, since the page itself needs no cookie.
 * @param secret null removes the cookie.
 */
export function formatSessionCookie(
  request: FastifyRequest,
  addressBase: GetBaseUrl,
  cookieName: string,
  secret: string | null,
): string {
  const lifetime = secret === null ? 0 : sessionLimits.longestMs / 1_000
  // A false claim of https only marks the cookie of the client that makes it.
  const isSecure = addressBase(request).startsWith('https:') || request.headers['x-forwarded-proto'] === 'https'
  return `${cookieName}=${secret ?? ''}; Max-Age=${lifetime}; Path=/api; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** Sent with every write by a page of this instance. Another site's page cannot send it without our consent (CORS). */
export const pageHeader = 'x-pennon-ui'

/**
 * The error for a request with a cookie, or to sign in, that a page of this instance did not send; null when it did.
 * Browsers leave out `Sec-Fetch-Site` on plain http, and `Origin` in reads: then the page's own header has to be there.
 */
export function findCrossSiteError(request: FastifyRequest, addressBase: GetBaseUrl): WireError | null {
  const { method, headers } = request
  const isWrite = method !== 'GET' && method !== 'HEAD'
  const hasPageHeader = headers[pageHeader] !== undefined
  if (isWrite && !hasPageHeader) return withoutPageHeader
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' ? null : crossSite
  if (headers.origin !== undefined) return isOwnOrigin(request, headers.origin, addressBase) ? null : crossSite
  return hasPageHeader ? null : crossSite
}

function isOwnOrigin(request: FastifyRequest, origin: string, addressBase: GetBaseUrl): boolean {
  if (!URL.canParse(origin)) return false
  const { host, origin: sent } = new URL(origin)
  const base = addressBase(request)
  return host === request.headers.host || (URL.canParse(base) && new URL(base).origin === sent)
}

const crossSite = wireError(
  403,
  'cross_site_request',
  'A session works only for requests that a page of this instance sends. Programs use a personal API key.',
)
const withoutPageHeader = wireError(
  403,
  'cross_site_request',
  'Requests that change something with a session need the header X-Pennon-UI. Programs use a personal API key.',
)
