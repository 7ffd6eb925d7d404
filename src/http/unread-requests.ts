// What never became a request, or never came to its end: there is no reply then, only the connection, which ends with the
// answer. A route may have a body of its own for requests that stop coming in.

import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { encodeWireError, type WireError, wireError } from '#wire/wire-error.ts'
import type { Route } from './route.ts'

const requestFaults: Record<string, WireError> = {
  HPE_HEADER_OVERFLOW: wireError(431, 'invalid_request', 'The address and the headers are more than 16 KiB.'),
  ERR_HTTP_REQUEST_TIMEOUT: wireError(408, 'invalid_request', 'The request did not arrive in time.'),
}
const notHttp = wireError(400, 'invalid_request', 'This is no HTTP request.')

interface UnreadRequest {
  readonly route: Route
  readonly headers: IncomingHttpHeaders
}

/** Requests of routes that say something themselves, from their headers to their answers. */
const unreadRequests = new WeakMap<Socket, UnreadRequest>()

export function noteUnread(route: Route, { raw }: FastifyRequest): void {
  unreadRequests.set(raw.socket, { route, headers: raw.headers })
}

/** The next request of the connection may be of another route. */
export function noteAnswered({ raw }: FastifyRequest): void {
  unreadRequests.delete(raw.socket)
}

/** For Fastify, as its `clientErrorHandler`. */
export function answerUnreadableRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const unread = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? unreadRequests.get(socket) : undefined
  const answer = unread?.route.stalled ?? requestFaults[error.code ?? ''] ?? notHttp
  const body = (unread?.route.encodeError ?? encodeWireError)(answer)
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
    ...(unread === undefined ? {} : ownHeaders(unread)),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join('')}\r\n${body}`)
}

function ownHeaders({ route, headers }: UnreadRequest): Record<string, string> {
  const own: Record<string, string> = { Date: new Date().toUTCString() }
  for (const name of route.echoes ?? []) if (headers[name] !== undefined) own[name] = String(headers[name])
  if (route.retryAfterSeconds !== undefined) own['Retry-After'] = String(route.retryAfterSeconds)
  return own
}
