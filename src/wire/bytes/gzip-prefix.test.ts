import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { prependToGzip } from './gzip-prefix.ts'

describe('prependToGzip', () => {
  for (const [name, prefix, rest] of [
    ['text', 'before; ', 'var after = 1; '.repeat(10_000)],
    ['nothing before', '', 'after'],
    ['nothing after', 'before', ''],
    ['more than one block', 'é'.repeat(100_000), Array.from({ length: 50_000 }, (_, n) => n * n).join(' ')],
  ] as const) {
    it(`gives a gzip stream that decompresses to both contents in order: ${name}`, () => {
      const unpacked = Buffer.from(rest)
      const pieces = prependToGzip(Buffer.from(prefix), gzipSync(unpacked), unpacked)
      assert.equal(gunzipSync(Buffer.concat(pieces)).toString(), prefix + rest)
    })
  }

  it('does not copy the compressed contents', () => {
    const unpacked = Buffer.from('x'.repeat(100))
    const packed = gzipSync(unpacked)
    const [, , rest] = prependToGzip(Buffer.from('y'), packed, unpacked)
    assert.equal(rest!.buffer, packed.buffer)
  })
})
