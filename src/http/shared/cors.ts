// CORS: the groups of routes that pages of other origins may call, and the headers by which they can read answers.

import type { IncomingHttpHeaders } from 'node:http'
import type { RouteGroup } from './route.ts'

/**
 * The methods that pages of other origins may use, by group; null when they may use none.
 * Source: docs/wire/evaluation.md 1.1; ingestion.md 1.3.
 */
export const corsMethods: Record<RouteGroup, string | null> = {
  flags: 'GET, POST, OPTIONS, HEAD',
  definitions: null,
  capture: 'GET, POST, OPTIONS',
  capture_v1: 'POST, OPTIONS',
  browser: 'GET, HEAD, OPTIONS',
  management: null,
  health: null,
  changes: 'GET, OPTIONS',
  live: null,
  exports: null,
  ui: null,
}

/** For unknown paths: a page should see the 404, not an unexplained CORS failure. */
export const corsOfUnknown = 'GET, POST, OPTIONS'
/** How long a browser may cache the answer to a preflight. Source: docs/wire/clients.md 10.4. */
const preflightSeconds = '600'

interface Asking {
  readonly method?: string | undefined
  readonly headers: IncomingHttpHeaders
}

/** Whether the answer needs CORS headers: the request has an origin, and the group is open to pages. */
export function isSentByPage(
  cors: string | null,
  { headers }: { readonly headers: IncomingHttpHeaders },
): cors is string {
  return cors !== null && headers.origin !== undefined
}

/**
 * Headers for every answer to a request with an origin, errors included.
 * @param cors methods that a page may use on the path.
 */
export function buildCorsHeaders({ method, headers }: Asking, cors: string): Record<string, string> {
  const answered: Record<string, string> = {
    'access-control-allow-origin': headers.origin!,
    'access-control-allow-credentials': 'true',
    vary: 'origin, access-control-request-method, access-control-request-headers',
  }
  if (method !== 'OPTIONS') return answered
  answered['access-control-allow-methods'] = cors
  const requested = headers['access-control-request-headers']
  if (requested !== undefined) answered['access-control-allow-headers'] = requested
  answered['access-control-max-age'] = preflightSeconds
  return answered
}
