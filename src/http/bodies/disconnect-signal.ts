// Stops work for clients that have disconnected.

import type { FastifyReply } from 'fastify'

/** Aborts when the request's connection ends or its answer is written. */
export function createDisconnectSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  else raw.once('close', () => gone.abort())
  return gone.signal
}
