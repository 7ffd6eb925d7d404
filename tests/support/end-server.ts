import type { FastifyInstance } from 'fastify'

/**
 * Ends a test's server and its connections at once. A graceful close waits for one on which the rest of a refused body still
 * comes, and then until its keep-alive time is over.
 */
export async function endServer(server: FastifyInstance): Promise<void> {
  server.server.closeAllConnections()
  await server.close()
}
