// Whether a client still waits for its answer, so that work for a client that left can stop.

import type { FastifyReply } from 'fastify'

/** Aborted when the connection of the request ends, or its answer is written. */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  else raw.once('close', () => gone.abort())
  return gone.signal
}
