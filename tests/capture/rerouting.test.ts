// Rerouting by age with real requests, on the event loop and in a decode thread, and only if the setting asks for it.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startCaptureServer, testToken } from '../support/capture-server.ts'

const item = (timestamp: string, over: object = {}) => ({ event: 'e', distinct_id: 'u', timestamp, ...over })
const items = [
  item('2025-06-24T11:00:00Z'),
  item('2025-06-24T11:00:00.001Z'),
  item('2020-01-01T00:00:00Z', { event: '$exception' }),
]
const body = (...more: object[]) => JSON.stringify({ api_key: testToken, batch: [...items, ...more] })

const lanes = async (server: Awaited<ReturnType<typeof startCaptureServer>>) =>
  (await server.records()).events
    .filter(({ propertiesJson }) => propertiesJson.length < 100)
    .map(({ lane, historicalMigration, importJobId }) => [lane, historicalMigration, importJobId])

const rerouted = [
  ['main', false, 0],
  ['error_tracking', false, 0],
  ['historical', true, 1],
]

it('old live events go to the lane of imports if so configured, in a decode thread as well', async t => {
  const here = await startCaptureServer(t, { rerouteOlderThanDays: 7 })
  assert.equal(await (await here.post('/batch/', body())).text(), '{"status":"Ok"}')
  assert.deepEqual(await lanes(here), rerouted)
  const there = await startCaptureServer(t, { rerouteOlderThanDays: 7 })
  const large = item('2025-07-01T10:00:00Z', { properties: { a: 'x'.repeat(900_000) } })
  assert.equal(await (await there.post('/batch/', body(large, large))).text(), '{"status":"Ok"}')
  assert.deepEqual(await lanes(there), rerouted)
})

it('live events of any age stay in the main lane if no age is configured', async t => {
  const server = await startCaptureServer(t)
  await server.post('/batch/', body())
  assert.deepEqual(
    (await lanes(server)).map(([lane]) => lane),
    ['main', 'main', 'error_tracking'],
  )
})
