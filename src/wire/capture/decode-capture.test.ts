import assert from 'node:assert/strict'
import { it } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { readRequestRefusal, rowCountOf } from '#core/capture/outcome-table.ts'
import {
  type CaptureInput,
  decodeAndPrepareCapture,
  type PreparedCapture,
  prepareCaptureOnEventLoop,
} from './decode-capture.ts'

const received = { receivedAtMs: Date.parse('2025-07-01T11:00:00Z'), ip: '', random: () => 0 }
const good = { event: 'e', distinct_id: 'u' }

function inputOf(batch: readonly object[], verbose = false): CaptureInput {
  return inputOfBody(JSON.stringify({ api_key: 'phc_x', batch }), verbose)
}

function inputOfBody(body: string | Buffer, verbose = false): CaptureInput {
  return {
    body: Buffer.from(body as string),
    ...{ data: '', compression: '', contentType: 'application/json', contentEncoding: '' },
    ...{ legacyPath: false, engage: false, querySentAtMs: null, fallbackToken: null, ip: '', verbose },
  }
}

it('the event loop and a thread decode a request to the same table, and keep its body only if an item may be refused', () => {
  const bodies: [readonly object[], boolean, boolean][] = [
    [[good], false, false],
    [[good, { event: 'e' }], false, true],
    [[good, { event: 'e' }], true, false],
  ]
  for (const [batch, verbose, hasBody] of bodies) {
    const prepared = [prepareCaptureOnEventLoop, decodeAndPrepareCapture].map(prepare => {
      const request = prepare(inputOf(batch, verbose), received)
      assert.ok(request.kind === 'prepared')
      return request satisfies PreparedCapture
    })
    assert.deepEqual(prepared[0], prepared[1])
    const { table, body } = prepared[0]!
    assert.deepEqual(
      [rowCountOf(table), readRequestRefusal(table) !== null, body !== ''],
      [batch.length, hasBody, hasBody],
    )
  }
})

it('a batch as SDKs send it is decoded on the event loop, even if some part of it has to be parsed', () => {
  const event = { ...good, properties: { url: 'https://shop.example/'.padEnd(560, 'x') } }
  for (const items of [Array(100).fill(event), [...Array(98).fill(event), { ...event, uuid: 5 }]])
    for (const body of [Buffer.from(JSON.stringify(items)), gzipSync(JSON.stringify(items))])
      assert.notEqual(prepareCaptureOnEventLoop(inputOfBody(body), received).kind, 'too_much_work')
  const large = Array(200).fill({ ...event, more: 'x'.repeat(600) })
  assert.equal(prepareCaptureOnEventLoop(inputOf(large), received).kind, 'prepared')
})

it('a request that would block the event loop is decoded in a thread, compressed or not, and little of it is parsed first', t => {
  const parses = t.mock.method(JSON, 'parse').mock
  const batchOf = (items: string) => `{"api_key":"phc_x","batch":[${items}]}`
  const keys = Array.from({ length: 10_000 }, (_, index) => `"k${index}":1`)
  const wide = `{"event":"e","distinct_id":"u","properties":{${keys}}}`
  const requests: [string, string, boolean?][] = [
    ['thousands of events', batchOf(Array(8_001).fill('{"event":"e","distinct_id":"u"}').join())],
    ['hundreds of events', batchOf(Array(300).fill('{"event":"e","distinct_id":"u"}').join())],
    ['values that are parsed since a field is repeated', batchOf(wide.replace('"event"', '"event":"e","event"'))],
    ['values that are parsed since events are judged one by one', batchOf(wide), true],
    ['much text', batchOf(wide.replace('"k0":1', `"k0":"${'x'.repeat(256 * 1024)}"`))],
  ]
  for (const [what, text, verbose] of requests) {
    for (const body of [text, gzipSync(text)]) {
      parses.resetCalls()
      assert.deepEqual(prepareCaptureOnEventLoop(inputOfBody(body, verbose), received), { kind: 'too_much_work' }, what)
      assert.ok(
        parses.calls.every(call => String(call.arguments[0]).length <= 64 * 1024),
        what,
      )
      assert.equal(decodeAndPrepareCapture(inputOfBody(body, verbose), received).kind, 'prepared', what)
    }
  }
  assert.equal(prepareCaptureOnEventLoop(inputOfBody(batchOf(wide)), received).kind, 'prepared')
  const brotli = {
    ...inputOfBody(brotliCompressSync(JSON.stringify([{ ...good, api_key: 'phc_x' }]))),
    contentEncoding: 'br',
  }
  assert.deepEqual(prepareCaptureOnEventLoop(brotli, received), { kind: 'too_much_work' })
  assert.equal(decodeAndPrepareCapture(brotli, received).kind, 'prepared')
})
