// Queues of event store queries that alternate between projects, on a server that answers when the test allows it.

import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it, type TestContext } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { parseEndpointUrl } from '#adapters/clickhouse/connection/clickhouse-clients.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import { PortError } from '#ports/port-error.ts'
import { eventually } from '../support/eventually.ts'
import { askedBatch } from './asked-batch.ts'

const uuid = '0197c5a0-0000-7000-8000-000000000001'
const asked = [{ uuid, event: 'e', distinctId: 'd', timestampMs: 0 }]

/** A store whose server answers nothing before `release`, and then a row with 0. */
async function waitingStore(t: TestContext) {
  const asking: ServerResponse[] = []
  let isReleased = false
  const end = (response: ServerResponse) => response.end('[0]\n')
  const server = createServer((request, response) => {
    request.resume()
    if (isReleased) end(response)
    else asking.push(response)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}/pennon`
  const store = createClickHouseEventStore({ endpoint: () => parseEndpointUrl(url), clock: { nowMs: () => 0 } })
  t.after(async () => {
    await store.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    store,
    asking,
    release: () => {
      isReleased = true
      for (const response of asking) end(response)
    },
  }
}

const askedCount = 30
const questions: readonly {
  readonly name: string
  readonly running: number
  readonly waiting: number
  readonly ask: (store: EventStore, projectId: number) => Promise<unknown>
}[] = [
  {
    name: 'lists',
    ...{ running: 4, waiting: 16 },
    ask: (store, projectId) => store.countRejected({ projectId }),
  },
  {
    name: 'the counts of an import report',
    ...{ running: 4, waiting: 16 },
    ask: (store, projectId) => store.countImportedRows(projectId, 5),
  },
  {
    name: 'the counts by day and name of an import',
    ...{ running: 4, waiting: 16 },
    ask: (store, projectId) => store.listImportedCounts({ projectId, importJobId: 5, after: null, limit: 10 }),
  },
  {
    name: 'the single events of an import',
    ...{ running: 4, waiting: 16 },
    ask: (store, projectId) => store.findImportedRows(projectId, 5, [uuid]),
  },
  {
    name: 'how many events of a batch are stored',
    ...{ running: 2, waiting: 6 },
    ask: (store, projectId) => store.countStoredEvents(projectId, askedBatch(asked)),
  },
]

for (const { name, running, waiting, ask } of questions)
  it(`the event store serves projects in turn for ${name}, and rejects queries beyond the queue limit`, async t => {
    const { store, asking, release } = await waitingStore(t)
    const refused: unknown[] = []
    const all = Array.from({ length: askedCount }, () => ask(store, 1).catch(error => refused.push(error)))
    await eventually(() => asking.length === running, { what: 'the first queries' })
    assert.equal(refused.length, askedCount - running - waiting)
    assert.ok(refused.every(error => error instanceof PortError && error.code === 'full'))
    const other = ask(store, 2)
    await eventually(() => asking.length > running, { what: 'the query of another project' })
    release()
    await Promise.all([...all, other])
  })
