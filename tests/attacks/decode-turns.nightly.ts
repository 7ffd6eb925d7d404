// One address fills the decode queue with bodies that keep a thread busy as long as their size allows. Other senders'
// large batches still wait for only one or two of the attacker's jobs each, and none of them is refused.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { lz64Bomb } from '../support/lz64-bomb.ts'

const goodCount = 5

describe('a queue of decode threads that one sender fills', () => {
  for (const [name, attackerCount, path, body] of [
    ['lz64 that stands for 200 MB', 100, '/e/?compression=lz64', Buffer.from(lz64Bomb(200_000_000))],
    ['gzip of 99 MiB', 20, '/e/', gzipSync(Buffer.alloc(99 * 1024 * 1024, 0x20))],
    ['a form of 2 MiB of plus signs', 80, '/e/', Buffer.from(`data=${'+'.repeat(2 * 1024 * 1024)}`)],
  ] as const) {
    it(`takes good batches of others in their turn: ${name}`, async t => {
      const server = await startCaptureServer(t)
      const good = goodBatch()
      await server.post('/batch/', good)

      let attacksDone = 0
      const statuses = new Map<number, number>()
      const attacks = Array.from({ length: attackerCount }, async () => {
        const answer = await server.post(path, body, { 'x-forwarded-for': '192.0.2.1' })
        attacksDone++
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      })
      const passed: number[] = []
      const tookMs: number[] = []
      await until(() => attacksDone > 0)
      for (let n = 0; n < goodCount; n++) {
        const [before, startedMs] = [attacksDone - (statuses.get(503) ?? 0), performance.now()]
        const answer = await server.post('/batch/', good, { 'x-forwarded-for': `198.51.100.${n}` })
        assert.equal(answer.status, 200)
        tookMs.push(performance.now() - startedMs)
        passed.push(attacksDone - (statuses.get(503) ?? 0) - before)
      }
      await Promise.all(attacks)
      console.log(
        `${name}, ${body.length} bytes × ${attackerCount}: answers ${JSON.stringify([...statuses])};`,
        `good batches waited for ${passed.join(' ')} of them, ${tookMs.map(ms => ms.toFixed(0)).join(' ')} ms`,
      )
      // One running job, one with an earlier turn, and those that end while the request and its answer are in transit,
      // but not the 64 that wait.
      for (const count of passed) assert.ok(count <= 10, `${count} jobs of the attacker came first`)
    })
  }
})

/** A body that takes a thread about a second: 20 MiB of escapes, sent as 40 KB. */
const escapes: Uint8Array<ArrayBuffer> = gzipSync(
  `{"api_key":"made up","batch":[{"event":"e","distinct_id":"u","properties":{"x":"${'\\ud83d\\ude00'.repeat(20 * 87_381)}"}}]}`,
  { level: 9 },
)

describe('a queue of decode threads that one customer of a provider fills', () => {
  const from = (n: number) => ({
    'content-type': 'application/json',
    'x-forwarded-for': `2001:db8:0:${n.toString(16)}::1`,
  })

  it('takes good batches of others in their turn, though each of its networks sends no more than one', async t => {
    const server = await startCaptureServer(t)
    const good = goodBatch()
    await server.post('/batch/', good)
    const statuses: number[] = []
    const gone = new AbortController()
    const attacks = Array.from({ length: 70 }, async (_, n) => {
      const options = { method: 'POST', headers: from(n), body: escapes, signal: gone.signal }
      statuses.push((await fetch(`${server.url}/batch/`, options)).status)
    })
    const ended = Promise.allSettled(attacks)
    await until(() => statuses.length > 0)
    const passed: number[] = []
    for (let n = 0; n < goodCount; n++) {
      const before = readCount()
      assert.equal((await server.post('/batch/', good, { 'x-forwarded-for': `198.51.100.${n}` })).status, 200)
      passed.push(readCount() - before)
    }
    console.log(
      `70 networks of one /48, ${escapes.length} bytes each: good batches waited for ${passed.join(' ')} of them`,
    )
    for (const count of passed) assert.ok(count <= 3, `${count} jobs of the attacker came first`)
    gone.abort()
    await ended

    function readCount(): number {
      return statuses.filter(status => status !== 503).length
    }
  })

  it('does not work for clients that hung up', async t => {
    const server = await startCaptureServer(t)
    const good = goodBatch()
    await server.post('/batch/', good)
    const cpuOfOne = await cpuMsOf(() => server.post('/batch/', escapes, from(0)))
    const gone = new AbortController()
    const attacks = Array.from({ length: 60 }, () =>
      fetch(`${server.url}/batch/`, { method: 'POST', headers: from(0), body: escapes, signal: gone.signal }),
    )
    const ended = Promise.allSettled(attacks)
    await Promise.race(attacks)
    gone.abort()
    await ended
    // It has the same sender, whose other bodies would all be read before it.
    const cpuMs = await cpuMsOf(() => server.post('/batch/', good, from(0)))
    console.log(`60 bodies whose clients hung up: the next one waits for ${cpuMs} ms of CPU; one takes ${cpuOfOne} ms`)
    // Some are still read, whose clients are not yet known to be gone.
    assert.ok(cpuMs < 20 * cpuOfOne, `${cpuMs} ms were spent, one takes ${cpuOfOne} ms`)
  })
})

function goodBatch(): Uint8Array<ArrayBuffer> {
  const item = { event: 'e', distinct_id: 'u', properties: { text: 'x'.repeat(200) } }
  return gzipSync(JSON.stringify({ api_key: testToken, batch: Array(3_000).fill(item) }))
}

/** CPU time of all threads of this process while `work` runs. */
async function cpuMsOf(work: () => Promise<{ status: number }>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return Math.round((user + system) / 1000)
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1))
}
