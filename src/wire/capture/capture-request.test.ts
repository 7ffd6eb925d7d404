import assert from 'node:assert/strict'
import { isAscii } from 'node:buffer'
import { describe, it } from 'node:test'
import { parseCaptureQuery } from './capture-query.ts'
import { parseCaptureRequest } from './capture-request.ts'
import { structuredIdBytesMax } from './incoming-item.ts'
import type { CaptureContext } from './open-request.ts'

/** The code of a refusal, what else became of the request, or the number of its events. */
function resultOf(value: unknown, over: Partial<CaptureContext> = {}): string | number {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const bytes = Buffer.from(text)
  const limits = { itemCountMax: 1e6, parsedBytesMax: 1e6, structuredIdBytesMax }
  const context = { engage: false, querySentAtMs: null, fallbackToken: null, ...limits, ...over }
  const parsed = parseCaptureRequest({ text, bytes, ascii: isAscii(bytes), formToken: null }, context)
  if (!parsed.ok) return parsed.error.error.code
  if (typeof parsed.value === 'string') return parsed.value
  return 'kind' in parsed.value ? parsed.value.kind : parsed.value.items.length
}

// tests/capture/v0-shapes.test.ts has what a body may hold.
describe('parseCaptureRequest', () => {
  const named = { event: 'e', distinct_id: 'u' }
  it('leaves requests with too many items or too long a text to a thread', () => {
    assert.equal(resultOf({ token: 'k', batch: [named, named] }, { itemCountMax: 1 }), 'too_much_work')
    assert.equal(resultOf('[0,0,0,0,0,0]', { parsedBytesMax: 12 }), 'too_much_work')
    assert.equal(resultOf({ token: 'k', batch: [] }, { parsedBytesMax: 12 }), 'empty_batch')
    const listed = { event: 'e', distinct_id: Array(500).fill(0) }
    assert.equal(resultOf({ token: 'k', batch: [listed, listed] }, { structuredIdBytesMax: 2_000 }), 'too_much_work')
    assert.equal(resultOf({ token: 'k', batch: [listed] }, { structuredIdBytesMax: 2_000 }), 1)
    assert.equal(resultOf('[0,0,0,0,0,0]', { parsedBytesMax: 13 }), 'invalid_shape')
  })
  it('refuses ids that are lists or objects if they are too long in total', () => {
    const long = (count: number) => [...Array(count).keys()].map(index => 1e5 + index)
    const batch = (count: number) => [1, 2].map(() => ({ event: 'e', properties: { distinct_id: long(count) } }))
    assert.equal(resultOf({ token: 'k', batch: batch(4_000) }), 2)
    assert.equal(resultOf({ token: 'k', batch: batch(5_000) }), 'invalid_shape')
    assert.equal(resultOf({ token: 'k', event: 'e', distinct_id: long(10_000) }), 'invalid_shape')
  })
})

describe('parseCaptureQuery', () => {
  it('reads the parameters that it knows and ignores all others', () => {
    assert.deepEqual(parseCaptureQuery({ compression: 'gzip', beacon: '1', _: '1751367610000', v: '3', token: 'k' }), {
      ok: true,
      value: { compression: 'gzip', data: '', beacon: true, sentAtMs: 1751367610000, token: 'k', verbose: false },
    })
    assert.equal(parseCaptureQuery(undefined).ok, true)
    for (const verbose of ['1', 'true', '0', 'false', '2', '']) {
      const query = parseCaptureQuery({ verbose })
      assert.equal(query.ok && query.value.verbose, verbose === '1' || verbose === 'true', verbose)
    }
    // Send times before 2021 may be in seconds.
    for (const _ of ['1751367610', '-5']) {
      const query = parseCaptureQuery({ _ })
      assert.equal(query.ok && query.value.sentAtMs, null)
    }
  })
  it('refuses non-integers, including empty text, repeated parameters, and two send times', () => {
    for (const name of ['_', 'sent_at', 'beacon']) {
      for (const value of ['', '1.5', 'x', 'true', '0x1', ' 1', '2025-07-01T10:00:00Z', ['1', '1']]) {
        const query = parseCaptureQuery({ [name]: value })
        assert.deepEqual(query.ok || [query.error.code, query.error.attr], ['invalid_query', name], `${name}=${value}`)
      }
    }
    assert.equal(parseCaptureQuery({ _: '1', sent_at: '1' }).ok, false)
  })
})
