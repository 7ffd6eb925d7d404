// Defines a row of the route table, which says who may call a handler. Handlers parse, call one service and encode.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { encodeWireError, type WireError } from '#wire/wire-error.ts'

/**
 * Who may call a route. `open`: any client (health, fixed answers). `project_key`: holders of the public key, which the
 * handler checks. `personal_key`: holders of a personal key in `Authorization` and people who signed in, checked before the
 * handler. `server_key`: holders of a personal key or of a secret key of the project; the handler checks the key and answers
 * with the errors of PostHog's public API. `operator`: a process on this machine that is neither a proxy nor a page, a
 * personal key, or an admin who signed in.
 */
export const routeAccesses = ['open', 'project_key', 'personal_key', 'server_key', 'operator'] as const
export type RouteAccess = (typeof routeAccesses)[number]

/**
 * The API to which a route belongs: it labels the route's metrics and decides what CORS allows. `changes`, `live` and
 * `exports` are separate groups because their responses stay open, so their durations say nothing about speed.
 */
export const routeGroups = [
  'flags',
  'definitions',
  'capture',
  'capture_v1',
  'browser',
  'management',
  'health',
  'changes',
  'live',
  'exports',
  'ui',
] as const
export type RouteGroup = (typeof routeGroups)[number]

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** Without a trailing slash; the server accepts both. Parameters as in Fastify: `/projects/:projectId`. */
  readonly path: string
  readonly access: RouteAccess
  /**
   * The scope that a personal key needs to call this, such as `feature_flag:write`; several, separated by spaces, when
   * it needs each of them; `any` admits every valid key. When absent, `personal_key` routes need all scopes (`*`), and
   * `operator` routes any valid key.
   */
  readonly scope?: string
  /** The scopes that a person who signed in needs instead, for what a role must not do although it holds `scope`. */
  readonly scopeOfPersons?: string
  /** Also accepts `?personal_api_key=`, which old SDKs send. Other routes refuse a key in the address. */
  readonly acceptsKeyInQuery?: true
  readonly group: RouteGroup
  /** The most bytes of the body as received; a longer body gets a 413. */
  readonly bodyLimitBytes: number
  /** Body of the 413. */
  readonly tooLarge?: WireError
  /** Called with the error of the 413, so that refused events can be stored. */
  readonly refused?: (request: FastifyRequest, error: WireError) => void
  /** Body of the 503 when other requests' bodies use up the budget; when absent, the server's generic 503 is sent. */
  readonly busy?: WireError
  /** A GET request may have a body, which is read for the handler. */
  readonly takesBodyOfGet?: true
  /** Body of the 408 for a request that stalls after its headers; when absent, the server's generic 408 is sent. */
  readonly stalled?: WireError
  /**
   * `Retry-After` of the server's own answers where a retry helps: 408, 500, 503. When absent, only a 503 has the header.
   */
  readonly retryAfterSeconds?: number
  /** Request headers, in lower case, that every answer on this path returns. */
  readonly echoes?: readonly string[]
  /** Runs before the body is read. To refuse, it answers itself and returns false. */
  readonly beforeBody?: (request: FastifyRequest, reply: FastifyReply) => boolean
  /** Encodes errors found outside the handler, in the protocol's own format; `encodeWireError` when absent. */
  readonly encodeError?: (error: WireError) => string
  /**
   * Answers errors found outside the handler, for routes whose error format depends on the request. Not called for broken
   * connections.
   */
  readonly answerError?: (request: FastifyRequest, reply: FastifyReply, error: WireError) => void
  /** Answers through `reply`. `request.body` is a Buffer, empty when the request had no body. */
  readonly handler: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>
}

/** Sends JSON text unchanged. The serializer keeps Fastify from adding a charset, which JSON does not have. */
export function sendJson(reply: FastifyReply, status: number, body: string | Buffer): void {
  sendBytes(reply, status, 'application/json', body)
}

/** Sends a body of any type unchanged. */
export function sendBytes(reply: FastifyReply, status: number, contentType: string, body: string | Buffer): void {
  reply.code(status).header('content-type', contentType).serializer(passBodyUnchanged).send(body)
}

/** Sends a wire error with its own status. */
export function sendError(reply: FastifyReply, error: WireError, encode = encodeWireError): void {
  sendJson(reply, error.status, encode(error))
}

/** Sends an error found outside the handler of a route, in the route's own form. */
export function sendRouteError(
  route: Pick<Route, 'encodeError' | 'answerError'> | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
  error: WireError,
): void {
  if (route?.answerError === undefined) sendError(reply, error, route?.encodeError)
  else route.answerError(request, reply, error)
}

function passBodyUnchanged(body: unknown): string {
  return body as string
}
