// Connections whose request could not be read, or never came to its end: there is no reply object then, so the answer is
// written to the connection, which ends with it. A route may have its own body for requests that stall.

import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { encodeWireError, type WireError, wireError } from '#wire/wire-error.ts'
import { headersForPage, isOfPage } from '../shared/cors.ts'
import type { Route } from '../shared/route.ts'
import { isDraining } from './drained-bodies.ts'

const requestFaults: Record<string, WireError> = {
  HPE_HEADER_OVERFLOW: wireError(431, 'invalid_request', 'The address and the headers are more than 16 KiB.'),
  ERR_HTTP_REQUEST_TIMEOUT: wireError(408, 'invalid_request', 'The request did not arrive in time.'),
}
const notHttp = wireError(400, 'invalid_request', 'This is no HTTP request.')

/** What a route says for itself of a request that stops coming in. */
type OwnWords = Partial<Pick<Route, 'stalled' | 'encodeError' | 'retryAfterSeconds' | 'echoes'>>

interface UnreadRequest {
  readonly route: OwnWords
  readonly cors: string | null
  readonly request: IncomingMessage
}

/**
 * Requests, from their headers to their answers, whose route has words of its own, or which come from pages: a page sees an
 * answer only when it names the page's origin. Before its headers are read nothing is known of a request, its origin
 * included, so a page sees that 408, and the 400 and 431 of what is no request, as a failed connection.
 */
const unreadRequest = Symbol('unread request')

/** A property, since an entry in a `WeakMap` for each request costs the garbage collector more than the request's own objects. */
interface NotedSocket extends Socket {
  [unreadRequest]?: UnreadRequest | undefined
}

/** @param cors methods that pages may use there; null for none. */
export function noteUnread(route: OwnWords, cors: string | null, { raw }: FastifyRequest): void {
  if (route.stalled === undefined && !isOfPage(cors, raw)) return
  const socket: NotedSocket = raw.socket
  socket[unreadRequest] = { route, cors, request: raw }
}

/** The next request of the connection may be of another route. */
export function noteAnswered({ raw }: FastifyRequest): void {
  const socket: NotedSocket = raw.socket
  socket[unreadRequest] = undefined
}

/** A client gets this long to read its answer and close; then the connection is cut, so that none stays half open. */
const lingerMs = 2_000

/** A request whose body comes too slowly: answered as one whose time is over. */
export function answerStalledRequest({ socket }: IncomingMessage): void {
  answerUnreadableRequest(Object.assign(new Error('stalled'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
}

/** For Fastify, as its `clientErrorHandler`. */
export function answerUnreadableRequest(error: Error & { code?: string }, socket: Socket): void {
  // A request that was answered already has only its body left to be read.
  if (error.code === 'ECONNRESET' || !socket.writable || isDraining(socket)) {
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
    ...(unread === undefined ? {} : ownHeaders(unread)),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.end(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join('')}\r\n${body}`)
}

function ownHeaders({ route, cors, request }: UnreadRequest): Record<string, string> {
  const { headers } = request
  const own: Record<string, string> = { Date: new Date().toUTCString() }
  if (isOfPage(cors, request)) Object.assign(own, headersForPage(request, cors))
  for (const name of route.echoes ?? []) if (headers[name] !== undefined) own[name] = String(headers[name])
  if (route.retryAfterSeconds !== undefined) own['Retry-After'] = String(route.retryAfterSeconds)
  return own
}
