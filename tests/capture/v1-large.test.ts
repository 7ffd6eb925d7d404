// Batches of protocol v1 with as many events as a request may have.

import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it, type TestContext } from 'node:test'
import timers from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { startCaptureServer } from '../support/capture-server.ts'
import { uuidOf, v1Headers } from './v1-requests.ts'

/**
 * Makes each step of sliced work take a whole slice, however fast the machine is.
 * @returns how often such work has yielded to the event loop.
 */
function turnsOfLongSteps(t: TestContext): () => number {
  const now = performance.now.bind(performance)
  let stepsMs = 0
  t.mock.method(performance, 'now', () => {
    stepsMs += 10
    return now() + stepsMs
  })
  const turns = t.mock.method(timers, 'setImmediate').mock
  syncBuiltinESMExports()
  t.after(syncBuiltinESMExports)
  return () => turns.callCount()
}

describe('a large v1 batch', () => {
  it('is answered with a result for each event, without blocking the event loop', async t => {
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
    const turns = turnsOfLongSteps(t)
    const answer = await fetch(`${server.url}/i/v1/analytics/events`, { method: 'POST', headers, body })
    const { results } = (await answer.json()) as { results: Record<string, object> }
    assert.equal(Object.keys(results).length, count)
    assert.deepEqual(results[uuidOf(count - 2)], { result: 'ok' })
    assert.deepEqual(results[uuidOf(count - 1)], { result: 'drop', details: 'exceptions_over_quota' })
    // Filtering, assigning the project and answering take steps of a few hundred events each.
    assert.ok(turns() >= 250, `${turns()} turns`)
  })
})
