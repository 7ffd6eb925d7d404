// Opens the ports of a front: one for everything, or a public one and one for the private API.

import type { FastifyInstance } from 'fastify'
import { createAuthorizer } from '#http/management/kit/authenticate.ts'
import { closeServer, createHttpServer } from '#http/server.ts'
import type { Route } from '#http/shared/route.ts'
import { composeEdges } from './edge.ts'
import { composeEventsServer, endServer, listenOn } from './events-server.ts'
import type { FrontParts } from './parts.ts'

export interface FrontServers {
  readonly publicServer: FastifyInstance
  /** Null when the private API has no port of its own. */
  readonly adminServer: FastifyInstance | null
  /** @throws the error of `listen`, with its code. */
  listen(): Promise<{ url: string; adminUrl: string | null; eventsUrl: string | null }>
}

/** @param adminRoutes null without an admin port. */
export function composeServers(
  parts: FrontParts,
  publicRoutes: readonly Route[],
  adminRoutes: readonly Route[] | null,
  opened: AsyncDisposableStack,
): FrontServers {
  const { config, logger, metrics, monotonicNowMs, trustedProxies, noteStateAway, liveEvents } = parts
  const { keyCheck, changes } = parts.definitions
  const authorize = createAuthorizer({ keyCheck, noteStateAway, operatorsNeedKey: config.metricsRequireKey })
  const hasAdminPort = adminRoutes !== null
  const forEdges = { hasAdminPort, logger, metrics, monotonicNowMs, trustedProxies }
  const { publicEdge, adminEdge, eventsConnections } = composeEdges(forEdges)
  const publicServer = createHttpServer({ routes: publicRoutes, logger, metrics, authorize, ...publicEdge })
  const adminServer = hasAdminPort
    ? createHttpServer({ routes: adminRoutes, logger, metrics, authorize, ...adminEdge })
    : null
  const eventsServer = composeEventsServer(parts, eventsConnections)
  // Streams were made before the servers that use them, but have to end before them too: an open stream would keep its
  // server from closing until it is cut. The live view's last reads are awaited beside the last requests.
  opened.defer(async () => {
    changes.close()
    const liveEventsClosed = liveEvents.close()
    await Promise.all([
      closeServer(publicServer),
      adminServer && closeServer(adminServer),
      eventsServer && endServer(eventsServer),
      liveEventsClosed,
    ])
  })
  return {
    publicServer,
    adminServer,
    listen: async () => {
      const { host, port, adminPort, eventsPort } = config
      const url = await publicServer.listen({ host, port })
      const adminUrl = adminServer === null ? null : await adminServer.listen({ host, port: adminPort! })
      const eventsUrl = eventsServer === null ? null : await listenOn(eventsServer, host, eventsPort!)
      return { url, adminUrl, eventsUrl }
    },
  }
}
