// Answers requests that could not be read or never arrived completely. Such a request has no reply object, so the answer is
// written to the connection, which is then closed. A route may have its own answer body for requests that stall.

import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { encodeWireError, type WireError, wireError } from '#wire/wire-error.ts'
import { buildCorsHeaders, isSentByPage } from '../shared/cors.ts'
import type { Route } from '../shared/route.ts'
import { isBodyDraining } from './drained-bodies.ts'

const requestFaults: Record<string, WireError> = {
  HPE_HEADER_OVERFLOW: wireError(431, 'invalid_request', 'The URL and the headers exceed 16 KiB.'),
  ERR_HTTP_REQUEST_TIMEOUT: wireError(408, 'invalid_request', 'The request did not arrive in time.'),
}
const notHttp = wireError(400, 'invalid_request', 'Not a valid HTTP request.')

/** The fields of a route that shape the answer to a stalled request. */
type OwnAnswers = Partial<Pick<Route, 'stalled' | 'encodeError' | 'retryAfterSeconds' | 'echoes'>>

interface UnreadRequest {
  readonly route: OwnAnswers
  readonly cors: string | null
  readonly request: IncomingMessage
}

/**
 * Set on a connection from the headers of a request until its answer, if the route has its own error or the request comes
 * from a page: a page sees an answer only when it names the page's origin. Before the headers are read, the origin is
 * unknown: if the request stalls until then (408) or is unreadable (400, 431), a page sees only a failed connection.
 */
const unreadRequest = Symbol('unread request')

/** A property instead of a `WeakMap` entry, which would cost the garbage collector more than the request's own objects. */
interface NotedSocket extends Socket {
  [unreadRequest]?: UnreadRequest | undefined
}

/** @param cors methods that pages may use on the route; null for none. */
export function rememberUnreadRequest(route: OwnAnswers, cors: string | null, { raw }: FastifyRequest): void {
  if (route.stalled === undefined && !isSentByPage(cors, raw)) return
  const socket: NotedSocket = raw.socket
  socket[unreadRequest] = { route, cors, request: raw }
}

/** Forgets the request, since the connection's next request may be for another route. */
export function forgetUnreadRequest({ raw }: FastifyRequest): void {
  const socket: NotedSocket = raw.socket
  socket[unreadRequest] = undefined
}

/** How long a client may take to read its answer and close the connection before the connection is destroyed. */
const lingerMs = 2_000

/** Answers a request whose body arrives too slowly in the same way as a request that timed out. */
export function answerStalledRequest({ socket }: IncomingMessage): void {
  answerUnreadableRequest(Object.assign(new Error('stalled'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
}

/** Fastify's `clientErrorHandler`. */
export function answerUnreadableRequest(error: Error & { code?: string }, socket: Socket): void {
  // Writes nothing if the rest of a body is being drained: its request is already answered.
  if (error.code === 'ECONNRESET' || !socket.writable || isBodyDraining(socket)) {
    socket.destroy()
    return
  }
  const unread = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? (socket as NotedSocket)[unreadRequest] : undefined
  const answer = unread?.route.stalled ?? requestFaults[error.code ?? ''] ?? notHttp
  const body = (unread?.route.encodeError ?? encodeWireError)(answer)
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
    ...(unread === undefined ? {} : buildHeaders(unread)),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.end(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join('')}\r\n${body}`)
}

function buildHeaders({ route, cors, request }: UnreadRequest): Record<string, string> {
  const { headers } = request
  const own: Record<string, string> = { Date: new Date().toUTCString() }
  if (isSentByPage(cors, request)) Object.assign(own, buildCorsHeaders(request, cors))
  for (const name of route.echoes ?? []) if (headers[name] !== undefined) own[name] = String(headers[name])
  if (route.retryAfterSeconds !== undefined) own['Retry-After'] = String(route.retryAfterSeconds)
  return own
}
