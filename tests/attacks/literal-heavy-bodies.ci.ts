// Bodies with as many tiny values as fit, among them numbers whose literals are kept. The event loop must not read them
// value by value through a JavaScript function, which took 20 to 60 ms each. The test counts the event loop's own JSON
// calls and prints the CPU time.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { v1Headers, v1Path } from '../capture/v1-requests.ts'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { bulkPath, startOfrep } from '../support/ofrep-server.ts'

/** A list that repeats the value as often as it fits, plus one literal that a double cannot reproduce. */
const listOf = (value: string, bytes: number) => `[${`${value},`.repeat(bytes / (value.length + 1))}1.0]`
const values = ['0', '-0', '[]', '{}', '1e5']

/** Counts what the event loop parses during `work`. The time is measured in a run without the counters. */
async function counted(t: TestContext, name: string, work: () => Promise<unknown>) {
  await work()
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  const parses = t.mock.method(JSON, 'parse')
  const literals = t.mock.method(JSON as unknown as { rawJSON(text: string): unknown }, 'rawJSON')
  await work()
  const hasFunction = parses.mock.calls.some(call => typeof call.arguments[1] === 'function')
  const literalCount = literals.mock.callCount()
  parses.mock.restore()
  literals.mock.restore()
  console.log(`${name}: ${((user + system) / 1000).toFixed(1)} ms of CPU, ${literalCount} literals kept`)
  return { hasFunction, literalCount }
}

describe('bodies with very many tiny literals', () => {
  it('cost the event loop little if they are an OFREP context', async t => {
    const server = await startOfrep(t)
    for (const value of values) {
      // About the maximum number of values in a body, where a list counts twice; more are refused.
      const body = `{"context":{"targetingKey":"u","plan":${listOf(value, Math.min(60_000, 1_000 * (value.length + 1)))}}}`
      const { hasFunction, literalCount } = await counted(t, `ofrep, ${body.length} bytes of ${value}`, async () => {
        assert.equal((await server.ask(bulkPath, body)).status, 200)
      })
      assert.equal(hasFunction, false)
      assert.ok(literalCount <= 1_001)
    }
  })

  it('are decoded in a thread if they are the distinct id of an event', async t => {
    const server = await startCaptureServer(t)
    for (const [index, value] of values.entries()) {
      const path = index % 2 === 0 ? '/e/' : '/e/?verbose=1'
      const body = `{"api_key":"${testToken}","event":"e","distinct_id":${listOf(value, 60_000)}}`
      const { hasFunction, literalCount } = await counted(
        t,
        `distinct id, ${body.length} bytes of ${value}`,
        async () => {
          assert.equal((await server.post(path, body)).status, 200)
        },
      )
      assert.deepEqual([hasFunction, literalCount], [false, 0])
    }
    const ids = (await server.records()).events.map(event => event.distinctId)
    assert.equal(ids.length, 3 * values.length)
    assert.ok(ids.every(id => id.startsWith('[') && id.length === 200))
  })

  it('are not parsed again if they are the properties and options of a v1 event', async t => {
    const server = await startCaptureServer(t)
    for (const value of values) {
      const list = listOf(value, 60_000)
      for (const [field, json] of [
        ['properties', `{"$lib":"mine","list":${list}}`],
        ['options', `{"product_tour_id":12345678901234567890,"list":${list}}`],
      ]) {
        const event = `"event":"e","uuid":"0197c5a0-0000-7000-8000-000000000001","distinct_id":"u","timestamp":"2025-07-01T10:00:00Z"`
        const body = `{"created_at":"2025-07-01T10:00:00Z","batch":[{${event},"${field}":${json}}]}`
        const { hasFunction, literalCount } = await counted(
          t,
          `v1 ${field}, ${body.length} bytes of ${value}`,
          async () => {
            assert.equal((await server.post(v1Path, body, v1Headers)).status, 200)
          },
        )
        assert.equal(hasFunction, false)
        assert.ok(literalCount <= 1)
      }
    }
  })
})
