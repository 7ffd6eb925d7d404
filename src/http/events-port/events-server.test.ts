import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { it, type TestContext } from 'node:test'
import { composePortLimits } from '#compose/front/port-limits.ts'
import { listenOnPort } from '#compose/front/servers.ts'
import { ok } from '#core/result.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { parseTrustedProxies } from '#wire/address/trusted-proxies.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { createEventsServer } from './events-server.ts'

/** A connection to a port for dashboards that answers every query with these bytes. */
async function connection(t: TestContext, rows: Buffer) {
  const metrics = createMetrics()
  const trustedProxies = parseTrustedProxies('')
  assert.ok(trustedProxies.ok)
  const { eventsConnections } = composePortLimits({
    ...{ hasAdminPort: false, logger: createSilentLogger(), metrics, monotonicNowMs: () => 0 },
    trustedProxies: trustedProxies.value,
  })
  const server = createEventsServer({
    events: { forwardSql: async () => ok({ headers: {}, body: Readable.from([rows]) }) },
    password: 'of-the-dashboards',
    hasProject: () => true,
    connections: eventsConnections,
    logger: createSilentLogger(),
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = new URL(await listenOnPort(server, '127.0.0.1', 0))
  const client = connect(Number(port), '127.0.0.1')
  t.after(() => client.destroy())
  return { client, metrics }
}

const query = 'GET /?user=project_1&password=of-the-dashboards&query=SELECT+1 HTTP/1.1\r\nHost: x\r\n'

it('unread answers on the dashboard port are charged to a budget', async t => {
  // More than the system buffers for a connection whose client reads nothing.
  const rows = Buffer.alloc(24 * 1024 * 1024)
  const { client, metrics } = await connection(t, rows)
  client.pause().write(`${query}\r\n`)
  const heldBytes = async () => Number(/^pennon_answer_bytes (\d+)$/m.exec(await metrics.registry.metrics())![1])
  await eventually(async () => (await heldBytes()) >= rows.length / 4, { what: 'what waits' })
  client.destroy()
  await eventually(async () => (await heldBytes()) === 0, { what: 'the end of it' })
})

it('a request that names several hosts is also refused on the dashboard port', async t => {
  const { client } = await connection(t, Buffer.from('1\n'))
  client.write(`${query}hOST: y\r\n\r\n`)
  let answer = ''
  client.setEncoding('utf8').on('data', text => {
    answer += text
  })
  await eventually(() => answer.includes('HTTP/1.1 200') || answer.includes('(BAD_ARGUMENTS)'))
  assert.match(answer, /^HTTP\/1\.1 400 [\s\S]+Code: 36\. DB::Exception: The request has several Host headers\./)
})
