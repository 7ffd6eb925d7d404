import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { it, type TestContext } from 'node:test'
import type { Connections } from '#http/connections.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { parseTrustedProxies } from '#wire/address/trusted-proxies.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { addressOf } from '../../../tests/support/local-server.ts'
import { composePortLimits } from './port-limits.ts'

const MiB = 1024 * 1024
/** Never written to, so it takes no memory. */
const bytes = Buffer.alloc(120 * MiB)

/** Requests an answer of that size, and reads nothing of it. */
async function unread(t: TestContext, connections: Connections, answerBytes: number): Promise<void> {
  const server = createServer(
    connections.serverOptions,
    connections.noting((_request, response) => response.end(bytes.subarray(0, answerBytes))),
  )
  connections.watch(server)
  const client = connect(Number(new URL(await addressOf(t, server)).port), '127.0.0.1').pause()
  client.on('error', () => undefined)
  t.after(() => client.destroy())
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
}

it('unread responses on the public port do not use up the budget of a private API that has its own port', async t => {
  const metrics = createMetrics()
  const trustedProxies = parseTrustedProxies('')
  assert.ok(trustedProxies.ok)
  const { publicLimits, adminLimits } = composePortLimits({
    ...{ hasAdminPort: true, logger: createSilentLogger(), metrics, monotonicNowMs: () => 0 },
    trustedProxies: trustedProxies.value,
  })
  const figure = async (name: RegExp) => Number(name.exec(await metrics.registry.metrics())?.[1] ?? 0)
  const heldMiB = async () => (await figure(/^pennon_answer_bytes (\d+)$/m)) / MiB
  const endedCount = () => figure(/^pennon_answers_ended_total{why="no_room"} (\d+)$/m)

  // The system takes some megabytes of each. One budget of 256 MiB would hold either the first two or the third.
  for (const waiting of [1, 2]) {
    await unread(t, publicLimits.connections, 120 * MiB)
    await eventually(async () => (await heldMiB()) > waiting * 105)
  }
  await unread(t, adminLimits.connections, 60 * MiB)
  await eventually(async () => (await heldMiB()) > 256)
  assert.equal(await endedCount(), 0)

  // Its own budget ends answers there without affecting the public port.
  await unread(t, adminLimits.connections, 60 * MiB)
  await eventually(async () => (await endedCount()) > 0)
  assert.equal(publicLimits.connections.count, 2)
})
