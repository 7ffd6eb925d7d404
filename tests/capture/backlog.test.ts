// Limits on a project’s records that wait for the worker, of live events and of imports. Checks answers and appended
// records.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { backlogOf, startCaptureServer, testToken } from '../support/capture-server.ts'

const batchOf = (count: number, others: object = {}) =>
  JSON.stringify({
    api_key: testToken,
    ...others,
    batch: Array.from({ length: count }, (_, n) => ({ event: 'e', distinct_id: `d${n}` })),
  })

describe('the backlog of a project', () => {
  it('is limited separately for imports and for live events', async t => {
    const server = await startCaptureServer(t, { backlogOf: traffic => backlogOf(traffic === 'live' ? 10 : 100) })
    const send = async (body: string) => (await server.post('/batch/', body)).status
    const anImport = { historical_migration: true }
    assert.equal(await send(batchOf(60, anImport)), 200)
    assert.equal(await send(batchOf(60, anImport)), 503)
    assert.equal(await send(batchOf(20, anImport)), 200)
    assert.equal(await send(batchOf(60, anImport)), 503)
    assert.equal(await send(batchOf(10)), 200, 'live events are counted apart')
    assert.equal(await send(batchOf(1)), 503)
    assert.equal((await server.records()).events.length, 90)
  })

  it('does not count live events of a request that is refused because the backlog of imports is full', async t => {
    const backlog = backlogOf(10)
    const refusing = { take: () => null, settle: () => assert.fail('nothing was taken'), isBelowShare: () => false }
    const server = await startCaptureServer(t, {
      backlogOf: traffic => (traffic === 'live' ? backlog : refusing),
      rerouteOlderThanDays: 1,
    })
    const old = { event: 'e', distinct_id: 'd', timestamp: '2020-01-01T00:00:00Z' }
    const mixed = JSON.stringify({ api_key: testToken, batch: [old, { event: 'e', distinct_id: 'd' }] })
    assert.equal((await server.post('/batch/', mixed)).status, 503)
    assert.equal((await server.records()).events.length, 0)
    assert.equal((await server.post('/batch/', batchOf(20))).status, 200, 'nothing else waits')
  })
})
