import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { EventStore } from '#ports/events/event-store.ts'
import { PortError } from '#ports/port-error.ts'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import {
  type ClickHouseEndpoint,
  parseEndpointUrl,
} from '../../src/adapters/clickhouse/connection/clickhouse-clients.ts'
import { removeEngineEndpoint } from '../../src/adapters/clickhouse-embedded/engine-endpoint.ts'
import { startEngineForTests } from '../support/engine.ts'
import { startStranger } from '../support/stranger-process.ts'
import { aStoredEvent } from '../support/values.ts'

describe('clients of the event store', () => {
  it('send nothing to another process on the port of a killed engine, and then use the next engine', async t => {
    const engine = await startEngineForTests(t)
    const store = open(t, engine.endpoint)
    await store.migrate()
    await insertOne(store)
    const { url } = engine.endpoint()
    const stranger = startStranger(t, Number(new URL(url).port))
    await engine.kill()
    await stranger.listening

    await assert.rejects(insertOne(store), isUnavailable)
    await assert.rejects(store.listEvents({ projectId: 1, descending: true, limit: 10 }), isUnavailable)
    for (const request of await stranger.received()) assert.match(request, /^GET \/proof\/[0-9a-f]{32}\nHost\n.*\n/)
    assert.ok((await stranger.received()).every(request => !/authorization/i.test(request)))

    await engine.restart()
    const uuid = await insertOne(store)
    assert.equal((await store.findEvent({ projectId: 1 }, uuid))?.uuid, uuid)
  })

  it('send no requests once the engine is known to have exited', async t => {
    const engine = await startEngineForTests(t)
    const store = open(t, () => engine.endpoint() ?? null)
    await store.migrate()
    const stranger = startStranger(t, Number(new URL(engine.endpoint().url).port))
    await engine.kill()
    await stranger.listening
    removeEngineEndpoint(engine.dataFolder)
    await assert.rejects(insertOne(store), isUnavailable)
    const before = (await stranger.received()).length
    await assert.rejects(insertOne(store), (error: PortError) => /is not running/.test(String(error.cause)))
    assert.equal((await stranger.received()).length, before)
  })

  it('reject an engine started with another secret, and a proof that was made for another client', async t => {
    const engine = await startEngineForTests(t)
    const another = open(t, () => ({ ...engine.endpoint(), secret: 'of-another-start' }))
    await assert.rejects(another.countRejected({ projectId: 1 }), isUnavailable)

    const answer = await (await fetch(`${engine.endpoint().url}/proof/${'0'.repeat(32)}`)).text()
    assert.match(answer, /^[0-9A-F]{64}\n$/)
    const { port } = await listening(
      t,
      createServer((_request, response) => {
        response.write(answer) // chunked, as the engine does
        response.end()
      }),
    )
    const repeating = open(t, () => ({ ...engine.endpoint(), url: `http://127.0.0.1:${port}` }))
    await assert.rejects(repeating.countRejected({ projectId: 1 }), isUnavailable)
  })

  for (const [what, summary] of [
    ['reports no rows', undefined],
    ['reports fewer rows than were sent', '{"written_rows":"0"}'],
  ] as const) {
    it(`do not accept a 200 as a successful insert from a server that ${what}`, async t => {
      const { port } = await listening(
        t,
        createServer((request, response) => {
          request.resume().once('end', () => {
            if (summary !== undefined) response.setHeader('x-clickhouse-summary', summary)
            response.end()
          })
        }),
      )
      const store = open(t, () => parseEndpointUrl(`http://user:pass@127.0.0.1:${port}/pennon`))
      await assert.rejects(insertOne(store), isUnavailable)
    })
  }
})

function open(t: TestContext, endpoint: () => ClickHouseEndpoint | null): EventStore {
  const store = createClickHouseEventStore({ endpoint, clock: { nowMs: Date.now } })
  t.after(() => store.close())
  return store
}

async function insertOne(store: EventStore): Promise<string> {
  const event = aStoredEvent()
  await store.insert({ events: [event], pendingEvents: [], overrides: [], recordings: [], rejected: [] })
  return event.uuid
}

function isUnavailable(error: unknown): boolean {
  return error instanceof PortError && error.code === 'unavailable'
}

async function listening(t: TestContext, server: Server): Promise<AddressInfo> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return server.address() as AddressInfo
}
