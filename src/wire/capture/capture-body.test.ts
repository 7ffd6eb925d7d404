import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import lzString from 'lz-string'
import { lz64Bomb } from '../../../tests/support/lz64-bomb.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { type CaptureBody, readCaptureBody } from './capture-body.ts'

const { compressToBase64 } = lzString
const formType = 'application/x-www-form-urlencoded'

function read(
  body: string | Uint8Array,
  over: Partial<Omit<CaptureBody, 'body'>> = {},
  outputBytesMax = 2_000_000,
): string {
  const input = {
    body: Buffer.from(body as string),
    data: '',
    compression: '',
    contentType: 'application/json',
    contentEncoding: '',
    legacyPath: true,
    ...over,
  }
  const payload = readCaptureBody(input, outputBytesMax)
  if (payload.ok) {
    assert.equal(payload.value.bytes.toString(), payload.value.text)
    return payload.value.text
  }
  return payload.error === 'inflated_too_large' ? payload.error : payload.error.detail
}

const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes as string).toString('base64')
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()

// tests/capture/v0-transport.test.ts has every encoding and form.
describe('readCaptureBody', () => {
  it('limits a body in lz64 by the bytes of its decompressed text', () => {
    const lz64 = compressToBase64('€'.repeat(1_000))
    assert.equal(read(lz64, { compression: 'lz64' }, 3_000).length, 1_000)
    for (const bytesMax of [999, 2_999])
      assert.equal(read(lz64, { compression: 'lz64' }, bytesMax), 'inflated_too_large')
  })
  it('stops a decompression bomb at the limit without decompressing it completely', () => {
    const zeros = Buffer.alloc(64 * 1024 * 1024, 0x20)
    const bombs = {
      gzip: gzipSync(zeros),
      br: brotliCompressSync(zeros, { params: { 1: 1 } }),
      zstd: zstdCompressSync(zeros),
      deflate: deflateSync(zeros),
    }
    for (const [contentEncoding, bomb] of Object.entries(bombs)) {
      const before = process.memoryUsage().arrayBuffers
      assert.equal(read(bomb, { contentEncoding }), 'inflated_too_large')
      assert.ok(process.memoryUsage().arrayBuffers - before < 8 * 1024 * 1024, contentEncoding)
    }
  })
  it('limits the output by the input, so that a bomb costs no more than the same number of uncompressed bytes', () => {
    const MiB = 1024 * 1024
    const spaces = (bytes: number) => Buffer.alloc(bytes, 0x20)
    const threadMax = 100 * MiB
    assert.equal(read(gzipSync(spaces(100 * MiB)), {}, threadMax).length, 100 * MiB)
    for (const [contentEncoding, compress] of [
      ['br', (bytes: Buffer) => brotliCompressSync(bytes, { params: { 1: 1 } })],
      ['zstd', zstdCompressSync],
    ] as const) {
      assert.equal(read(compress(spaces(25 * MiB)), { contentEncoding }, threadMax).length, 25 * MiB)
      assert.equal(read(compress(spaces(25 * MiB + 1)), { contentEncoding }, threadMax), 'inflated_too_large')
    }
    for (const units of [5_000_000, 200_000_000])
      assert.equal(read(lz64Bomb(units), { compression: 'lz64' }, threadMax), 'inflated_too_large')
    assert.equal(read(lz64Bomb(4_000_000), { compression: 'lz64' }, threadMax)[0], 'x')
    // A ratio as real events have: the compressed size is a fraction of this.
    const real = compressToBase64(
      JSON.stringify(Array.from({ length: 60_000 }, (_, n) => ({ event: 'e', n, at: n * 7.5 }))),
    )
    assert.ok(read(real, { compression: 'lz64' }, threadMax).length > 2 * MiB)
  })
  it('decompresses everything even if the trailer of the last gzip member states too small a size', () => {
    const text = `"${'x'.repeat(200_000)}"`
    assert.equal(read(Buffer.concat([gzipSync(text), gzipSync(' ')])).length, text.length + 1)
  })
  it('returns text or an error for every input', () => {
    const anyBody = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.concat([Buffer.from([0x1f, 0x8b, 0x08]), bytes])),
      fc.string().map(text => Buffer.from(text)),
      fc.string().map(text => Buffer.from(base64(text))),
      fc.string().map(text => Buffer.from(`data=${text}`)),
      fc
        .dictionary(fc.constantFrom('data', '_', 'ip', 'compression', '__proto__'), fc.string())
        .map(fields => Buffer.from(form(fields))),
    )
    const options = fc.record({
      compression: fc.constantFrom('', 'gzip', 'gzip-js', 'lz64', 'base64', 'b64', 'nonsense', '__proto__'),
      contentType: fc.constantFrom('', 'text/plain', formType, `${formType};x`),
      contentEncoding: fc.constantFrom('', 'gzip', 'br', 'deflate', 'zstd', 'constructor'),
      data: fc.oneof(fc.constant(''), fc.string()),
      legacyPath: fc.boolean(),
    })
    fc.assert(
      fc.property(anyBody, options, (body, over) => assert.equal(typeof read(body, over), 'string')),
      { numRuns: runs(400, 2_000) },
    )
  })
})
