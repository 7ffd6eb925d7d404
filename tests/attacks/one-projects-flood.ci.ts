// One project sends as many events as it can, in the smallest bodies: a megabyte of gzip would hold a quarter of an hour of the
// worker's time. It is told to come again, and the events of another project are queryable meanwhile as if it were not there.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testPersonalKey } from '../support/pennon.ts'

const floodMs = 20_000
const eventsPerRequest = 40_000
const probeCount = 6
const senderCount = 4

describe('a flood of one project', () => {
  it('is bounded, and keeps no event of another project waiting', async t => {
    const pennon = await startPennon()
    t.after(() => pennon.stop())
    const { api_token: floodKey } = await pennon.api<{ api_token: string }>('POST', '/api/projects/', { name: 'flood' })
    const { id: quietId, api_token: quietKey } = await pennon.api<{ id: number; api_token: string }>(
      'POST',
      '/api/projects/',
      { name: 'quiet' },
    )
    const item = (distinctId: string) => `{"event":"flood","distinct_id":"${distinctId}"}`
    const list = Array.from({ length: eventsPerRequest }, (_, n) => item(`u${n % 100}`)).join()
    const body = gzipSync(`{"api_key":"${floodKey}","batch":[${list}]}`)

    const answers = new Map<number, number>()
    const endAtMs = performance.now() + floodMs
    const senders = Array.from({ length: senderCount }, async () => {
      while (performance.now() < endAtMs) {
        const answer = await fetch(`${pennon.url}/batch/`, { method: 'POST', body })
        await answer.arrayBuffer()
        answers.set(answer.status, (answers.get(answer.status) ?? 0) + 1)
        if (answer.status !== 200) await new Promise(resolve => setTimeout(resolve, 50))
      }
    })
    const waits: number[] = []
    const before: number[] = []
    for (let n = 0; n < probeCount; n++) {
      const distinctId = randomUUID()
      before.push(await waitingRecords(pennon))
      const sent = await pennon.post('/capture/', { api_key: quietKey, event: 'probe', distinct_id: distinctId })
      assert.equal(sent.status, 200, 'nobody else is refused')
      const startedMs = performance.now()
      await eventually(() => isQueryable(pennon.url, quietId, distinctId), { what: 'the probe' })
      waits.push((performance.now() - startedMs) / 1000)
    }
    await Promise.all(senders)
    await pennon.caughtUp(120_000)
    console.log(
      `${body.length} bytes × ${eventsPerRequest} events: answers ${JSON.stringify([...answers])};`,
      `another's event was queryable after ${waits.map(s => s.toFixed(1)).join(' ')} s, behind ${before.join(' ')} records`,
    )
    assert.ok((answers.get(503) ?? 0) > 0, 'the flood is refused now and then')
    // A request that finds nothing waiting, with what was on its way: not the hundreds of thousands that were sent.
    for (const count of before) assert.ok(count <= 2 * eventsPerRequest, `${count} records were ahead`)
  })
})

async function isQueryable(url: string, projectId: number, distinctId: string): Promise<boolean> {
  const answer = await fetch(`${url}/api/projects/${projectId}/events/?distinct_id=${distinctId}`, {
    headers: { authorization: `Bearer ${testPersonalKey}` },
  })
  const { results } = (await answer.json()) as { results?: unknown[] }
  return results?.length === 1
}

async function waitingRecords(pennon: Pennon): Promise<number> {
  const { lanes } = await pennon.api<{ lanes: Record<'main', { appended: number; processed: number }> }>(
    'GET',
    '/api/projects/1/ingestion_status/',
  )
  return lanes.main.appended - lanes.main.processed
}
