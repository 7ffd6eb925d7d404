// Bodies large enough to hold up the event loop go to the decode threads, with the same result.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import lzString from 'lz-string'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'
import { fieldOf } from '../support/fields-of.ts'
import { lz64Bomb } from '../support/lz64-bomb.ts'
import { watchTurns } from '../support/turn-counts.ts'

const crashingEntry = new URL('./crashing-decode-thread.ts', import.meta.url)

function largeBatch(eventCount: number, textLength: number): string {
  const batch = Array.from({ length: eventCount }, (_, index) => ({
    event: 'large',
    distinct_id: `u${index}`,
    uuid: `0197c5a0-0000-7000-8000-${String(index).padStart(12, '0')}`,
    properties: { index, text: 'abcdefgh'.repeat(textLength / 8), list: [1.5, { a: null }] },
  }))
  return JSON.stringify({ api_key: testToken, batch })
}

async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { code: string }).code
}

describe('decode threads', () => {
  it('decode a large plain or gzipped body, and a batch of very many events, with the same result as the event loop', async t => {
    const server = await startCaptureServer(t)
    const bodies = [largeBatch(1_000, 2_000), gzipSync(largeBatch(1_000, 4_000)), gzipSync(largeBatch(5_000, 8))]
    let expectedCount = 0
    for (const body of bodies) {
      const response = await server.post('/batch/', body)
      assert.equal(await response.text(), '{"status":"Ok"}')
      const { events } = await server.records()
      expectedCount += body === bodies[2] ? 5_000 : 1_000
      assert.equal(events.length, expectedCount)
      const last = events.at(-1)!
      assert.deepEqual([last.projectId, last.token, last.ip], [1, testToken, '127.0.0.1'])
      assert.equal(JSON.parse(last.propertiesJson).index, body === bodies[2] ? 4_999 : 999)
      assert.equal(last.receivedAtMs, server.clock.nowMs())
    }
  })

  it('decode data in the query of requests with empty bodies', async t => {
    const server = await startCaptureServer(t)
    const data = encodeURIComponent(gzipSync(largeBatch(300, 8)).toString('base64'))
    for (const expectedCount of [300, 600]) {
      const answer = await fetch(`${server.url}/e/?data=${data}`)
      assert.deepEqual([answer.status, (await server.records()).events.length], [200, expectedCount])
    }
  })

  it('decompress large lz64 bodies, as such and in forms, and stop at the size limit', async t => {
    const server = await startCaptureServer(t)
    const lz64 = lzString.compressToBase64(largeBatch(1_000, 2_000))
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const bare = await server.post('/batch/?compression=lz64', lz64)
    assert.deepEqual([bare.status, (await server.records()).events.length], [200, 1_000])
    const inForm = await server.post('/e/', `data=${encodeURIComponent(lz64)}&compression=lz64`, form)
    assert.deepEqual([inForm.status, (await server.records()).events.length], [200, 2_000])
    const bomb = await server.post('/e/?compression=lz64', lz64Bomb(120_000_000))
    assert.deepEqual([bomb.status, await codeOf(bomb)], [413, 'payload_too_large'])
  })

  it('reject requests in the same way as the event loop, and store the reject', async t => {
    const server = await startCaptureServer(t)
    const body = largeBatch(1_000, 2_000)
    const bad = await server.post('/batch/', body.replace('"u999"', 'null'))
    assert.deepEqual([bad.status, await codeOf(bad)], [400, 'missing_distinct_id'])
    const unknown = await server.post('/batch/', body.replace(testToken, 'phc_other'))
    assert.deepEqual([unknown.status, await codeOf(unknown)], [401, 'unknown_api_key'])
    const broken = await server.post('/batch/', body.slice(0, -1))
    assert.deepEqual([broken.status, await codeOf(broken)], [400, 'invalid_json'])
    const { events, rejects } = await server.records()
    assert.deepEqual(events, [])
    assert.deepEqual(
      rejects.map(({ reason, field, body: kept }) => [reason, field, kept.length]),
      [['missing_distinct_id', 'batch.999.distinct_id', 64 * 1024]],
    )
  })

  it('keep the event loop free while 50 MiB are decompressed and parsed', async t => {
    const server = await startCaptureServer(t, {
      // What the log does with 50 MiB is not tested here.
      wrapLog: log => ({ ...log, append: async () => {} }),
    })
    const body = gzipSync(largeBatch(6_500, 8_000))
    const turns = watchTurns()
    assert.equal((await server.post('/batch/', body, { 'x-forwarded-for': '198.51.100.1' })).status, 200)
    const { jsonChars } = turns.end()
    assert.ok(server.jobsAhead.has('198.51.100.1'), 'a thread unpacks it')
    assert.ok(jsonChars < 100_000, `${jsonChars} characters in one turn`)
  })

  it('answer 503 when a thread dies, and work again afterwards', async t => {
    const server = await startCaptureServer(t, { threadEntry: crashingEntry })
    const body = largeBatch(1_000, 2_000)
    const lost = await server.post('/batch/', body.replace('"large"', '"crash"'))
    assert.equal(lost.status, 503)
    assert.ok(Number(lost.headers.get('retry-after')) >= 1)
    assert.deepEqual((await server.records()).events, [])
    await eventually(async () => (await server.metrics.childRestarts.get()).values[0]?.value === 1)
    const answers = await Promise.all([1, 2, 3].map(() => server.post('/batch/', body)))
    assert.deepEqual(fieldOf(answers, 'status'), [200, 200, 200])
    assert.equal((await server.records()).events.length, 3_000)
  })
})
