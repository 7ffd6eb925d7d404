// One address fills the decode queue with bodies that take a thread as long as their size allows. Large batches of others, sent
// beside them, are answered after a job or two of the attacker's each, and none of them is refused.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { lz64Bomb } from '../support/lz64-bomb.ts'

const goodCount = 5

describe('a queue of decode threads that one sender fills', () => {
  for (const [name, attackerCount, path, body] of [
    ['lz64 that stands for 200 MB', 100, '/e/?compression=lz64', Buffer.from(lz64Bomb(200_000_000))],
    ['gzip of 99 MiB', 30, '/e/', gzipSync(Buffer.alloc(99 * 1024 * 1024, 0x20))],
    ['a form of 2 MiB of plus signs', 80, '/e/', Buffer.from(`data=${'+'.repeat(2 * 1024 * 1024)}`)],
  ] as const) {
    it(`takes good batches of others in their turn: ${name}`, async t => {
      const server = await startCaptureServer(t)
      const item = { event: 'e', distinct_id: 'u', properties: { text: 'x'.repeat(200) } }
      const good = gzipSync(JSON.stringify({ api_key: testToken, batch: Array(3_000).fill(item) }))
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
      // One that runs, one whose turn it is before, and those that end while the request and its answer are on their way: not
      // the 64 that wait.
      for (const count of passed) assert.ok(count <= 10, `${count} jobs of the attacker came first`)
    })
  }
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1))
}
