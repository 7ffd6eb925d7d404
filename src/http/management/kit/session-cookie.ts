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

/** What a request with the cookie of a session is read with. */
export interface SessionCookieDeps {
  /** Where people open the screens: the public URL, unless they are on a port of their own. */
  readonly screensBase: GetBaseUrl
  /** The name of the cookie, without the prefix of one that is `Secure`. */
  readonly sessionCookie: string
}

/**
 * The secrets in the request's cookies; none without the cookie. Another host of the same domain can add cookies of this
 * name, in front of the right one.
 */
export function readSessionSecrets(deps: SessionCookieDeps, request: FastifyRequest): ReadonlySet<string> {
  const secrets = new Set<string>()
  const sent = request.headers.cookie
  if (sent === undefined) return secrets
  const { name } = describeCookie(deps, request)
  for (const pair of sent.split(';')) {
    const at = pair.indexOf('=')
    if (at !== -1 && pair.slice(0, at).trim() === name) secrets.add(pair.slice(at + 1).trim())
  }
  return secrets
}

/**
 * Over https the cookie is `Secure`, and its name has the prefix that browsers accept only from https: a page or a proxy
 * that can only answer http cannot set it. A false claim of https concerns only the client that makes it.
 */
function describeCookie({ screensBase, sessionCookie }: SessionCookieDeps, request: FastifyRequest) {
  const isSecure = screensBase(request).startsWith('https:') || request.headers['x-forwarded-proto'] === 'https'
  return { isSecure, name: isSecure ? `__Secure-${sessionCookie}` : sessionCookie }
}

/**
 * The value of `Set-Cookie`. `Strict` hides the cookie from requests that other sites cause; links from elsewhere still
 * work, since the page itself needs no cookie.
 * @param secret null removes the cookie.
 */
export function formatSessionCookie(deps: SessionCookieDeps, request: FastifyRequest, secret: string | null): string {
  const lifetime = secret === null ? 0 : sessionLimits.longestMs / 1_000
  const { isSecure, name } = describeCookie(deps, request)
  return `${name}=${secret ?? ''}; Max-Age=${lifetime}; Path=/api; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** Sent with every write by a page of this instance. Another site's page cannot send it without our consent (CORS). */
export const pageHeader = 'x-pennon-ui'

/**
 * The error for a request with a cookie, or to sign in, that a page of this instance did not send; null when it did.
 * On plain http, browsers send no `Sec-Fetch-Site`, and no `Origin` with a read. Such a request needs the page's own header.
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
