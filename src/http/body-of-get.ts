// The body of a GET, which Fastify leaves alone: on the capture paths a GET may send events the way a POST does.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { wireError } from '#wire/wire-error.ts'
import { type Route, sendError } from './route.ts'

/** The handler of a route for GET, with `request.body` filled when one comes; the route's limit and its 413 hold. */
export function withBodyOfGet(route: Pick<Route, 'bodyLimitBytes' | 'tooLarge' | 'handler'>): Route['handler'] {
  return (request, reply) => {
    const { headers } = request
    const isEmpty = (headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined
    return isEmpty ? route.handler(request, reply) : readThenHandle(route, request, reply)
  }
}

const genericTooLarge = wireError(413, 'payload_too_large', 'The request body is too large.')

async function readThenHandle(
  { bodyLimitBytes, tooLarge = genericTooLarge, handler }: Pick<Route, 'bodyLimitBytes' | 'tooLarge' | 'handler'>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    // The connection is still needed for the answer.
    for await (const chunk of request.raw.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length
      if (bytes > bodyLimitBytes) return sendError(reply.header('connection', 'close'), tooLarge)
      chunks.push(chunk)
    }
  } catch {
    // Who sent it is gone.
    return sendError(reply, wireError(400, 'invalid_request', 'The request did not arrive.'))
  }
  request.body = Buffer.concat(chunks, bytes)
  await handler(request, reply)
}
