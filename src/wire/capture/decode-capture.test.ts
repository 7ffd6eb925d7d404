import assert from 'node:assert/strict'
import { it } from 'node:test'
import { requestRefusal, rowCountOf } from '#core/capture/outcome-table.ts'
import { type CaptureInput, decodeAndPrepare, type PreparedCapture, prepareInline } from './decode-capture.ts'

const received = { receivedAtMs: Date.parse('2025-07-01T11:00:00Z'), ip: '', random: () => 0 }
const good = { event: 'e', distinct_id: 'u' }

function inputOf(batch: readonly object[], verbose = false): CaptureInput {
  return {
    body: Buffer.from(JSON.stringify({ api_key: 'phc_x', batch })),
    ...{ data: '', compression: '', contentType: 'application/json', contentEncoding: '' },
    ...{ legacyPath: false, engage: false, querySentAtMs: null, fallbackToken: null, ip: '', verbose },
  }
}

it('a request has the same table from the event loop and from a thread, and its body along only where an item may refuse it', () => {
  const bodies: [readonly object[], boolean, boolean][] = [
    [[good], false, false],
    [[good, { event: 'e' }], false, true],
    [[good, { event: 'e' }], true, false],
  ]
  for (const [batch, verbose, hasBody] of bodies) {
    const prepared = [prepareInline, decodeAndPrepare].map(prepare => {
      const request = prepare(inputOf(batch, verbose), received)
      assert.ok(request.kind === 'prepared')
      return request satisfies PreparedCapture
    })
    assert.deepEqual(prepared[0], prepared[1])
    const { table, body } = prepared[0]!
    assert.deepEqual([rowCountOf(table), requestRefusal(table) !== null, body !== ''], [batch.length, hasBody, hasBody])
  }
})
