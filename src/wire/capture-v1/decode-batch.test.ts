import assert from 'node:assert/strict'
import { it } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type PreparedV1Capture, prepareV1Capture, prepareV1OnEventLoop, type V1CaptureInput } from './decode-batch.ts'

const received = { receivedAtMs: Date.parse('2025-07-01T11:00:00Z'), ip: '' }
const sentAtMs = received.receivedAtMs

function inputOf(text: string, encoding: '' | 'gzip' | 'br'): V1CaptureInput {
  const body = { '': Buffer.from, gzip: gzipSync, br: brotliCompressSync }[encoding](text)
  return { headers: { token: 'phc_x', encoding, sentAtMs, sdk: null }, body, aiOnly: false }
}

function batchOf(count: number, properties = '{}'): string {
  const events = Array.from(
    { length: count },
    (_, index) =>
      `{"event":"e","distinct_id":"u","uuid":"0197c5a0-0000-7000-8000-${String(index).padStart(12, '0')}","timestamp":"2025-07-01T10:59:58Z","properties":${properties}}`,
  )
  return `{"created_at":"2025-07-01T11:00:00Z","batch":[${events}]}`
}

it('a v1 batch is decoded in a thread if it is long or has hundreds of events, and a long batch is not parsed first', t => {
  const parses = t.mock.method(JSON, 'parse').mock
  const keys = Array.from({ length: 10_000 }, (_, index) => `"k${index}":1`)
  for (const [text, encodings] of [
    [batchOf(300), ['', 'gzip']],
    [batchOf(1, `{${keys}}`), ['', 'gzip']],
    [batchOf(1), ['br']],
  ] as const) {
    for (const encoding of encodings) {
      parses.resetCalls()
      assert.deepEqual(prepareV1OnEventLoop(inputOf(text, encoding), received), { kind: 'too_much_work' })
      assert.ok(parses.calls.every(call => String(call.arguments[0]).length <= 64 * 1024))
      const prepared: PreparedV1Capture = prepareV1Capture(inputOf(text, encoding), received)
      assert.equal(prepared.kind, 'prepared')
    }
  }
  assert.equal(
    prepareV1OnEventLoop(inputOf(batchOf(100, '{"url":"https://shop.example/"}'), 'gzip'), received).kind,
    'prepared',
  )
})
