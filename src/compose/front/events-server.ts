// Composes the read-only port for dashboards, if the settings name one.

import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Connections } from '#http/connections.ts'
import { createEventsServer } from '#http/events-port/events-server.ts'
import type { EventsPortParts } from './parts.ts'

/** How long a stop waits for downloads. */
const lastDownloadsMs = 3_000

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
export async function listenOn(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host)
  await once(server, 'listening')
  const { address, family, port: actual } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${actual}`
}

/** Waits up to `lastDownloadsMs` for downloads to finish. */
export async function endServer(server: Server): Promise<void> {
  if (!server.listening) return
  const cut = setTimeout(() => server.closeAllConnections(), lastDownloadsMs)
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  await closed
  clearTimeout(cut)
}
