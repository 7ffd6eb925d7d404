import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { it } from 'node:test'
import { composeEdges } from '#compose/front/edge.ts'
import { listenOn } from '#compose/front/events-server.ts'
import { ok } from '#core/result.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { parseTrustedProxies } from '#wire/address/trusted-proxies.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { createEventsServer } from './events-server.ts'

it('answers of the port for dashboards that wait for their readers are charged to a room', async t => {
  const metrics = createMetrics()
  const trustedProxies = parseTrustedProxies('')
  assert.ok(trustedProxies.ok)
  const { eventsConnections } = composeEdges({
    ...{ hasAdminPort: false, logger: silentLogger(), metrics, monotonicNowMs: () => 0 },
    trustedProxies: trustedProxies.value,
  })
  // More than the system takes for a connection whose client reads nothing.
  const rows = Buffer.alloc(24 * 1024 * 1024)
  const server = createEventsServer({
    events: { passSql: async () => ok({ headers: {}, body: Readable.from([rows]) }) },
    password: 'of-the-dashboards',
    hasProject: () => true,
    connections: eventsConnections,
    logger: silentLogger(),
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = new URL(await listenOn(server, '127.0.0.1', 0))
  const client = connect(Number(port), '127.0.0.1').pause()
  t.after(() => client.destroy())
  client.write('GET /?user=project_1&password=of-the-dashboards&query=SELECT+1 HTTP/1.1\r\nHost: x\r\n\r\n')
  const heldBytes = async () => Number(/^pennon_answer_bytes (\d+)$/m.exec(await metrics.registry.metrics())![1])
  await eventually(async () => (await heldBytes()) >= rows.length / 4, { what: 'what waits' })
  client.destroy()
  await eventually(async () => (await heldBytes()) === 0, { what: 'the end of it' })
})
