// Batches of protocol v1 with as many events as a request may hold.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { startCaptureServer } from '../support/capture-server.ts'
import { uuidOf, v1Headers } from './v1-requests.ts'

/** Longest turn of this thread, by its processor time: other programs of the machine do not count. */
async function longestTurnMs(during: Promise<unknown>): Promise<number> {
  let isOver = false
  void during.finally(() => {
    isOver = true
  })
  let longest = 0
  for (let last = threadMs(); !isOver; ) {
    await nextTurn()
    const now = threadMs()
    longest = Math.max(longest, now - last)
    last = now
  }
  return longest
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

describe('a large v1 batch', () => {
  it('is answered with a result for each event, and the event loop goes on meanwhile', async t => {
    const noLog = { append: () => Promise.resolve(), close: () => Promise.resolve() }
    const server = await startCaptureServer(t, { quotas: { exceptions: 0 }, wrapLog: () => noLog })
    const count = 50_000
    const texts = Array.from(
      { length: count },
      (_, index) =>
        `{"event":"${index % 2 === 0 ? 'e' : '$exception'}","uuid":"${uuidOf(index)}","distinct_id":"d","timestamp":"2025-07-01T10:59:58Z"}`,
    )
    const body = gzipSync(`{"created_at":"2025-07-01T11:00:00Z","batch":[${texts.join()}]}`, { level: 1 })
    const headers = { ...v1Headers, 'content-encoding': 'gzip' }
    const answered = fetch(`${server.url}/i/v1/analytics/events`, { method: 'POST', headers, body }).then(answer =>
      answer.arrayBuffer(),
    )
    const longest = await longestTurnMs(answered)
    const { results } = JSON.parse(Buffer.from(await answered).toString()) as { results: Record<string, object> }
    assert.equal(Object.keys(results).length, count)
    assert.deepEqual(results[uuidOf(count - 2)], { result: 'ok' })
    assert.deepEqual(results[uuidOf(count - 1)], { result: 'drop', details: 'exceptions_over_quota' })
    assert.ok(longest < 50, `a turn took ${longest} ms`)
  })
})
