// One project sends as many events as possible in the smallest bodies: a megabyte of gzip would take the worker a
// quarter of an hour. The project is told to retry later, while another project's events stay queryable as fast as
// ever.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { largePersonEvents, makeLargePerson } from '../support/large-person.ts'
import { outcomesOf } from '../support/outcomes-of.ts'
import { type Pennon, startPennon, testPersonalKey } from '../support/pennon.ts'

const floodMs = 20_000
const eventsPerRequest = 40_000
const probeCount = 6
const senderCount = 4
const largeEventCount = 3_000
/** The most ids that one transaction may write in a merge. */
const largeIdCount = 2_050
const mergeCount = 200

let pennon: Pennon

/** @throws AssertionError when events of another project have to wait for those of the flooding one. */
export async function runOneProject(): Promise<boolean> {
  pennon = await startPennon()
  try {
    await flood()
    await manyEventsOfLargePerson()
    await manyMerges()
    return true
  } finally {
    await pennon.stop()
  }
}

async function flood(): Promise<void> {
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
  const ahead: number[] = []
  for (let n = 0; n < probeCount; n++) {
    const distinctId = randomUUID()
    ahead.push(await waitingRecords())
    const sent = await pennon.post('/capture/', { api_key: quietKey, event: 'probe', distinct_id: distinctId })
    assert.equal(sent.status, 200, 'no other project is refused')
    const startedMs = performance.now()
    await eventually(() => isQueryable(quietId, distinctId), { what: 'the probe' })
    waits.push((performance.now() - startedMs) / 1000)
  }
  await Promise.all(senders)
  await pennon.caughtUp()
  console.log(
    `${body.length} bytes × ${eventsPerRequest} events: answers ${JSON.stringify([...answers])};`,
    `another's event was queryable after ${waits.map(s => s.toFixed(1)).join(' ')} s, behind ${ahead.join(' ')} records`,
  )
  assert.ok((answers.get(503) ?? 0) > 0, 'the flood is refused from time to time')
  // One request that finds nothing waiting, plus those in transit, but not all the hundreds of thousands sent.
  for (const count of ahead) assert.ok(count <= 2 * eventsPerRequest, `${count} records were ahead`)
}

async function manyEventsOfLargePerson(): Promise<void> {
  await keepsNobodyWaiting(async token => {
    const personBytes = await makeLargePerson(pennon, token)
    const batch = Array.from({ length: largeEventCount }, (_, n) => ({
      event: 'large',
      properties: { distinct_id: 'large', n },
    }))
    return { what: `events of a person of ${personBytes} bytes`, before: largePersonEvents, batch }
  })
}

async function manyMerges(): Promise<void> {
  await keepsNobodyWaiting(async api_key => {
    const ids = Array.from({ length: largeIdCount }, (_, n) => ({
      event: '$identify',
      properties: { distinct_id: 'm0', $anon_distinct_id: `id-${n}` },
    }))
    const others = Array.from({ length: mergeCount }, (_, n) => ({
      event: '$set',
      properties: { distinct_id: `m${n + 1}`, $set: { n } },
    }))
    const before = [...ids, ...others]
    assert.equal((await pennon.post('/batch/', { api_key, batch: before })).status, 200)
    await pennon.caughtUp()
    // Each merge moves all ids of the person to the next one.
    const batch = Array.from({ length: mergeCount }, (_, n) => ({
      event: '$merge_dangerously',
      properties: { distinct_id: `m${n + 1}`, alias: `m${n}` },
    }))
    return { what: `merges of a person of ${largeIdCount} ids`, before: before.length, batch }
  })
}

interface CostlyEvents {
  readonly what: string
  /** Number of events that prepare the costly ones. */
  readonly before: number
  readonly batch: readonly object[]
}

/** @param prepare sends the preparing events with the project's key, and returns the costly events. */
async function keepsNobodyWaiting(prepare: (token: string) => Promise<CostlyEvents>): Promise<void> {
  type NewProject = { id: number; api_token: string }
  const costly = await pennon.api<NewProject>('POST', '/api/projects/', { name: 'costly' })
  const quiet = await pennon.api<NewProject>('POST', '/api/projects/', { name: 'quiet' })
  const { what, before, batch } = await prepare(costly.api_token)

  const sentAtMs = performance.now()
  assert.equal((await pennon.post('/batch/', { api_key: costly.api_token, batch })).status, 200)
  const waits: number[] = []
  const waiting: number[] = []
  while (waits.length < probeCount || (performance.now() - sentAtMs < 20_000 && (await waitingRecords()) > 0)) {
    const distinctId = randomUUID()
    waiting.push(await waitingRecords())
    const sent = await pennon.post('/capture/', { api_key: quiet.api_token, event: 'probe', distinct_id: distinctId })
    assert.equal(sent.status, 200)
    const startedMs = performance.now()
    await eventually(() => isQueryable(quiet.id, distinctId), { what: 'the probe' })
    waits.push((performance.now() - startedMs) / 1000)
    await new Promise(resolve => setTimeout(resolve, 500))
  }
  const ahead = waiting.filter(count => count > batch.length / 2).length
  await pennon.caughtUp(300_000)
  console.log(
    `${batch.length} ${what} took ${((performance.now() - sentAtMs) / 1000).toFixed(0)} s;`,
    `another's event was queryable after ${waits.map(s => s.toFixed(1)).join(' ')} s, with ${waiting.join(' ')} records waiting`,
  )
  assert.ok(ahead >= probeCount / 2, 'most costly events were still waiting when others were served')
  for (const seconds of waits) assert.ok(seconds < 5, `an event was queryable after ${seconds} s`)
  assert.deepEqual(await outcomesOf(pennon, costly.id), [['stored', batch.length + before]])
  assert.deepEqual(await outcomesOf(pennon, quiet.id), [['stored', waits.length]])
}

async function isQueryable(projectId: number, distinctId: string): Promise<boolean> {
  const answer = await fetch(`${pennon.url}/api/projects/${projectId}/events/?distinct_id=${distinctId}`, {
    headers: { authorization: `Bearer ${testPersonalKey}` },
  })
  const { results } = (await answer.json()) as { results?: unknown[] }
  return results?.length === 1
}

async function waitingRecords(): Promise<number> {
  const { lanes } = await pennon.api<{ lanes: Record<'main', { appended: number; processed: number }> }>(
    'GET',
    '/api/projects/1/ingestion_status/',
  )
  return lanes.main.appended - lanes.main.processed
}
