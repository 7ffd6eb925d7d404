// Whether a client still waits for its answer, for work that can be left undone.

import type { FastifyReply } from 'fastify'

/** Aborted when the connection of the request ends, or its answer is written. */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  if (raw.closed) gone.abort()
  else raw.once('close', () => gone.abort())
  return gone.signal
}
