// Opens the ports of a front: one port for everything, or a public port and a port for the private API; and the read-only
// port for dashboards, if the settings name it.

import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Connections } from '#http/connections.ts'
import { createEventsServer } from '#http/events-port/events-server.ts'
import { createAuthorizer } from '#http/management/kit/authenticate.ts'
import { closeServer, createHttpServer } from '#http/server.ts'
import type { Route } from '#http/shared/route.ts'
import type { FrontContext } from './context.ts'
import type { FrontDefinitions } from './definitions.ts'
import type { EventsPortParts } from './parts.ts'
import { composePortLimits } from './port-limits.ts'

export interface ServerParts extends FrontContext {
  readonly definitions: Pick<FrontDefinitions, 'keyCheck' | 'sessionCheck'>
  readonly sessionCookie: string
}

/** The routes and the streams that a front's servers serve. */
export interface ServedRoutes {
  readonly publicRoutes: readonly Route[]
  /** Null without a separate port for the private API. */
  readonly adminRoutes: readonly Route[] | null
  /**
   * When a front stops, these streams begin to close before the servers do; otherwise the servers would wait until open
   * streams are broken off. The end of the streams is awaited together with the last requests.
   */
  readonly streams: readonly { close(): unknown }[]
  /** Creates the server of the port for dashboards; returns null if the settings name no such port. */
  readonly eventsServer?: (connections: Connections) => Server | null
}

export function composeAuthorizer({
  definitions: { keyCheck, sessionCheck },
  noteStateAway,
  addressBase,
  screensBase,
  sessionCookie,
  config: { metricsRequireKey: operatorsNeedKey },
}: Pick<ServerParts, 'definitions' | 'noteStateAway' | 'addressBase' | 'screensBase' | 'sessionCookie' | 'config'>) {
  const bases = { addressBase, screensBase }
  return createAuthorizer({ keyCheck, sessionCheck, sessionCookie, ...bases, noteStateAway, operatorsNeedKey })
}

export function composeServers(
  parts: ServerParts,
  { publicRoutes, adminRoutes, streams, eventsServer: composeEventsServer }: ServedRoutes,
  opened: AsyncDisposableStack,
) {
  const { config, logger, metrics } = parts
  const authorize = composeAuthorizer(parts)
  const hasAdminPort = adminRoutes !== null
  const { publicLimits, adminLimits, eventsConnections } = composePortLimits({ ...parts, hasAdminPort })
  const publicServer = createHttpServer({ routes: publicRoutes, logger, metrics, authorize, ...publicLimits })
  const adminServer = hasAdminPort
    ? createHttpServer({ routes: adminRoutes, logger, metrics, authorize, ...adminLimits })
    : null
  const eventsServer = composeEventsServer?.(eventsConnections) ?? null
  opened.defer(async () => {
    const ended = streams.map(stream => stream.close())
    await Promise.all([
      ...ended,
      closeServer(publicServer),
      adminServer && closeServer(adminServer),
      eventsServer && closeGracefully(eventsServer),
    ])
  })
  return {
    publicServer,
    /** @throws the error of `listen`, with its code. */
    listen: async () => {
      const { host, port, adminPort, eventsPort } = config
      const url = await publicServer.listen({ host, port })
      const adminUrl = adminServer === null ? null : await adminServer.listen({ host, port: adminPort! })
      const eventsUrl = eventsServer === null ? null : await listenOnPort(eventsServer, host, eventsPort!)
      return { url, adminUrl, eventsUrl }
    },
  }
}

export function composeEventsServer(parts: EventsPortParts, connections: Connections): Server | null {
  const { config, definitions, logger, stores } = parts
  if (config.eventsPort === null || config.eventsPassword === null) return null
  return createEventsServer({
    events: stores.eventStore,
    password: config.eventsPassword,
    hasProject: projectId => definitions.findProjectById(projectId) !== null,
    connections,
    logger,
  })
}

/** @throws the error of `listen`, with its code. */
export async function listenOnPort(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host)
  await once(server, 'listening')
  const { address, family, port: actual } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${actual}`
}

/** How long a stop waits for downloads. */
const lastDownloadsMs = 3_000

async function closeGracefully(server: Server): Promise<void> {
  if (!server.listening) return
  const cut = setTimeout(() => server.closeAllConnections(), lastDownloadsMs)
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  await closed
  clearTimeout(cut)
}
