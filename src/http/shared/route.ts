// One row of the route table. Handlers parse, call one service and encode; the table says who may call them.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { encodeWireError, type WireError } from '#wire/wire-error.ts'

/**
 * Who may call a route:
 * `open` anyone (health, fixed answers); `project_key` the public key in the request, checked by the handler;
 * `personal_key` a secret in `Authorization`, checked before the handler; `server_key` a personal key or a secret key of the
 * project, checked by the handler, which answers in the wire's own words; `operator` a process on this machine that is
 * neither a proxy nor a page, or a personal key.
 */
export const routeAccesses = ['open', 'project_key', 'personal_key', 'server_key', 'operator'] as const
export type RouteAccess = (typeof routeAccesses)[number]

/**
 * The surface a route belongs to: label of its metrics, and what its CORS answer allows. `changes` and `live` are groups of
 * their own because their responses stay open, so their seconds say nothing about how fast anything is answered.
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
] as const
export type RouteGroup = (typeof routeGroups)[number]

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** Without a trailing slash; the server serves both spellings directly. Parameters as in Fastify: `/api/projects/:projectId`. */
  readonly path: string
  readonly access: RouteAccess
  /**
   * What a personal key must be allowed to call this: a scope such as `feature_flag:write`, every one of several with spaces
   * between them, `any` for every valid key. When absent, `personal_key` routes need all scopes (`*`), and `operator` ones any
   * valid key.
   */
  readonly scope?: string
  /** `?personal_api_key=` is taken as well, as old SDKs send it. Elsewhere a key in an address is refused. */
  readonly acceptsKeyInQuery?: true
  readonly group: RouteGroup
  /** Bytes of the body as received; more is 413. */
  readonly bodyLimitBytes: number
  /** Body of the 413. */
  readonly tooLarge?: WireError
  /** Called with that 413, so that events are not refused unseen. */
  readonly refused?: (request: FastifyRequest, error: WireError) => void
  /** Body of the 503 while bodies of other requests take all the room; the server has one of its own. */
  readonly busy?: WireError
  /** A GET may bring a body, and is handled with it. */
  readonly takesBodyOfGet?: true
  /** Body of the 408 of a request that stalls behind its headers; the server has one of its own. */
  readonly stalled?: WireError
  /** `Retry-After` of what the server itself answers where a retry helps: 408, 500 and 503. When absent, only a 503 has one. */
  readonly retryAfterSeconds?: number
  /** Headers of the request, in lower case, that every answer on this path gives back. */
  readonly echoes?: readonly string[]
  /** Runs before the body is read; answers itself and returns false to refuse. */
  readonly beforeBody?: (request: FastifyRequest, reply: FastifyReply) => boolean
  /** Encodes errors that the server finds before or after the handler, where a protocol has its own; else `encodeWireError`. */
  readonly encodeError?: (error: WireError) => string
  /** `request.body` is a Buffer (empty when there was none). Returns nothing; answers through `reply`. */
  readonly handler: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>
}

/** Answers JSON text as it is. The serializer keeps Fastify from adding a charset, which JSON does not have. */
export function sendJson(reply: FastifyReply, status: number, body: string | Buffer): void {
  reply.code(status).header('content-type', 'application/json').serializer(unchanged).send(body)
}

/** Answers an error of the wire with its own status. */
export function sendError(reply: FastifyReply, error: WireError, encode = encodeWireError): void {
  sendJson(reply, error.status, encode(error))
}

function unchanged(body: unknown): string {
  return body as string
}
