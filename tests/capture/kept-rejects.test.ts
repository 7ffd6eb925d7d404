// What the reject store gets of refused requests: which event it was, whose, where it would have gone, and how many events
// are counted beside it.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedReject } from '#core/events/captured-event.ts'
import { type CaptureServer, startCaptureServer, testToken } from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'

const uuid = '0197c5a0-0000-7000-8000-000000000001'
const good = { event: 'paid', distinct_id: 'ada', uuid }

/** What is kept of a request that is refused. */
async function keptOf(server: CaptureServer, path: string, body: object): Promise<CapturedReject> {
  const before = (await server.records()).rejects.length
  const answer = await server.post(path, JSON.stringify(body))
  assert.equal(answer.status, 400, await answer.text())
  return eventually(async () => (await server.records()).rejects[before])
}

const read = ({ name, distinctId, uuid }: CapturedReject) => [name, distinctId, uuid]

describe('the reject of a v0 request', () => {
  it('has the name, ids and uuid of its one event, whatever was wrong with it', async t => {
    const server = await startCaptureServer(t)
    const single = { ...good, api_key: testToken }
    const read400 = async (path: string, body: object) => read(await keptOf(server, path, body))
    const isRead = ['paid', 'ada', uuid]
    for (const path of ['/capture/', '/e/', '/batch', '/i/v0/e/', '/track/'])
      assert.deepEqual(await read400(path, { ...single, distinct_id: ' ' }), ['paid', ' ', uuid], path)
    assert.deepEqual(await read400('/e/', { ...single, properties: { $cookieless_mode: 1 } }), isRead)
    assert.deepEqual(await read400('/e/', { ...single, timestamp: 5 }), isRead)
    assert.deepEqual(await read400('/e/', { ...single, uuid: 'x' }), ['paid', 'ada', ''])
    assert.deepEqual(await read400('/e/', { ...single, event: undefined }), ['', 'ada', uuid])
    const inProperties = { ...single, distinct_id: undefined, properties: { distinct_id: 7 }, offset: 1.5 }
    assert.deepEqual(await read400('/e/', inProperties), ['paid', '7', uuid])
    assert.deepEqual(await read400('/engage/', { ...single, event: undefined, distinct_id: '' }), [
      '$identify',
      '',
      uuid,
    ])
    assert.deepEqual(await read400('/batch/', { api_key: testToken, batch: [{ ...good, $set: 5 }] }), isRead)
    assert.deepEqual(await read400('/e/', [{ ...single, timestamp: 5 }]), isRead)
  })

  it('names no event where it has several, or where a quota left the others out', async t => {
    const bad = { event: 'e', uuid }
    const server = await startCaptureServer(t, { quotas: { exceptions: 0 } })
    const send = (batch: object[]) => keptOf(server, '/batch/', { api_key: testToken, batch })
    assert.deepEqual(read(await send([bad, good])), ['', '', ''])
    assert.deepEqual(read(await send([{ ...bad, timestamp: 5 }, good])), ['', '', ''])
    assert.deepEqual(read(await send([{ ...good, event: '$exception' }, bad])), ['', '', ''])
  })

  it('keeps no more than 200 characters of a name and an id', async t => {
    const server = await startCaptureServer(t)
    const long = { api_key: testToken, event: 'e'.repeat(300), distinct_id: 'd'.repeat(300), timestamp: 5 }
    const { name, distinctId } = await keptOf(server, '/e/', long)
    assert.deepEqual([name.length, distinctId.length], [200, 200])
  })

  it('is in the lane of imports where its envelope says so', async t => {
    const server = await startCaptureServer(t)
    const single = await keptOf(server, '/e/', {
      ...good,
      api_key: testToken,
      timestamp: 5,
      historical_migration: true,
    })
    assert.deepEqual([single.lane, single.importJobId], ['main', 0])
    const batch = { api_key: testToken, historical_migration: true, batch: [{ ...good, uuid: 'x' }] }
    const { lane, importJobId, historicalMigration } = await keptOf(server, '/batch/', batch)
    assert.deepEqual([lane, importJobId, historicalMigration], ['historical', 1, true])
  })
})
