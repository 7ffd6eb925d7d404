import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import lzString from 'lz-string'
import { lz64Bomb } from '../../../tests/support/lz64-bomb.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { type CaptureBody, readCaptureBody } from './capture-body.ts'

const { compressToBase64 } = lzString
const json = '{"api_key":"phc_x","event":"e","properties":{"k":">>>???~~~€"}}'
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

describe('readCaptureBody', () => {
  it('accepts JSON under any content type', () => {
    for (const contentType of ['', 'text/plain', 'application/json; charset=utf-8'])
      assert.equal(read(json, { contentType }), json)
  })
  it('refuses an empty body', () => assert.equal(read(''), 'request missing data payload'))
  it('prefers the query parameter data, with blanks that were plus signs', () => {
    const data = base64(json)
    assert.ok(data.includes('+'))
    assert.equal(read('ignored', { data }), json)
    assert.equal(read('', { data: data.replaceAll('+', ' ') }), json)
    assert.equal(read('', { data: json }), json)
  })
  it('gunzips by hint and by magic bytes, with or without base64 around', () => {
    const gz = gzipSync(json)
    assert.equal(read(gz), json)
    assert.equal(read(gz, { contentEncoding: 'gzip', legacyPath: false }), json)
    for (const compression of ['gzip', 'gzip-js', 'GZIP']) assert.equal(read(gz, { compression }), json)
    assert.equal(read(base64(gz)), json)
    assert.equal(read(Buffer.concat([gzipSync(json.slice(0, 9)), gzipSync(json.slice(9))])), json)
  })
  it('trusts a gzip hint, except beside base64 of plain JSON in a form', () => {
    const broken = 'failed to decode request: invalid GZIP data'
    assert.equal(read(json, { compression: 'gzip' }), broken)
    assert.equal(read(gzipSync(json).subarray(0, 40)), broken)
    assert.equal(read(gzipSync(Buffer.from([0xff]))), 'failed to decode request: invalid gzip data')
    assert.equal(read(form({ data: base64(json) }), { contentType: formType, compression: 'gzip-js' }), json)
    assert.equal(read(form({ data: base64(gzipSync(json)) }), { contentType: formType, compression: 'gzip-js' }), json)
  })
  it('reads forms of base64 on every path, known by their type or by their first field', () => {
    for (const legacyPath of [true, false]) {
      assert.equal(read(form({ data: base64(json), ver: '1' }), { contentType: formType, legacyPath }), json)
    }
    assert.equal(read(`data=${base64(json)}`, { contentType: formType }), json)
    assert.equal(read(form({ data: json }), { contentType: formType }), json)
    assert.equal(read(form({ data: base64(json) }), { contentType: 'text/plain' }), json)
    assert.equal(read(form({ data: base64(json) }), { contentType: `${formType}; charset=UTF-8` }), json)
  })
  it('refuses a body that is announced as a form but is not one', () => {
    const expected = 'failed to decode request: expected form data in POST request payload'
    assert.equal(read(json, { contentType: formType }), expected)
    assert.equal(
      read('data=a&data=b', { contentType: formType }),
      'failed to decode request: invalid urlencoded form data',
    )
  })
  it('takes bare base64 of JSON anywhere, and twice on the old paths only', () => {
    assert.equal(read(base64(json), { legacyPath: false }), json)
    assert.equal(read(base64(base64(json))), json)
    assert.equal(read(base64(base64(json)), { legacyPath: false }), base64(json))
  })
  it('keeps text that only looks like base64', () => assert.equal(read('abc=abcd'), 'abc=abcd'))
  it('inflates other encodings when they decode and ignores them when not', () => {
    const bodies = { br: brotliCompressSync(json), zstd: zstdCompressSync(json), deflate: deflateSync(json) }
    for (const [contentEncoding, body] of Object.entries(bodies)) assert.equal(read(body, { contentEncoding }), json)
    assert.equal(read(deflateRawSync(json), { contentEncoding: 'deflate' }), json)
    // To raw deflate, the first bytes of the second body are a whole stream.
    for (const body of [json, '{\n  "event": 1}'])
      for (const contentEncoding of ['br', 'zstd', 'deflate', 'identity', 'lz4'])
        assert.equal(read(body, { contentEncoding }), body)
  })
  it('decompresses lz64 wherever it is announced: query, form and header, bare and in a form, on every path', () => {
    const lz64 = compressToBase64(json)
    for (const legacyPath of [true, false]) {
      for (const compression of ['lz64', 'lz-string', 'LZ64'])
        assert.equal(read(lz64, { compression, legacyPath }), json)
      assert.equal(read(lz64, { contentEncoding: 'lz64', legacyPath }), json)
      const inForm = { contentType: formType, legacyPath }
      assert.equal(read(form({ data: lz64, compression: 'lz64' }), inForm), json)
      assert.equal(read(form({ compression: 'lz64', data: lz64 }), inForm), json)
      assert.equal(read(form({ data: lz64 }), { ...inForm, compression: 'lz64' }), json)
      assert.equal(read(`data=${lz64}`, { ...inForm, compression: 'lz64' }), json)
      assert.equal(read('', { data: lz64, compression: 'lz64', legacyPath }), json)
    }
  })
  it('trusts magic bytes over an lz64 hint', () => {
    assert.equal(read(gzipSync(json), { compression: 'lz64' }), json)
  })
  it('refuses broken lz64, and text that is not valid Unicode', () => {
    const broken = 'failed to decode request: decompress_lz64: failed decompress to UTF16'
    for (const body of [json, compressToBase64(json).slice(0, -9), '===='])
      assert.equal(read(body, { compression: 'lz64' }), broken, body)
    assert.equal(read(form({ data: 'N4Ig', compression: 'lz64' }), { contentType: formType }), broken)
    assert.equal(
      read(compressToBase64('"\ud800"'), { compression: 'lz64' }),
      'failed to decode request: decompress_lz64: failed UTF16 to UTF8 conversion',
    )
  })
  it('bounds lz64 by the bytes of its text', () => {
    const lz64 = compressToBase64('€'.repeat(1_000))
    assert.equal(read(lz64, { compression: 'lz64' }, 3_000).length, 1_000)
    for (const bytesMax of [999, 2_999])
      assert.equal(read(lz64, { compression: 'lz64' }, bytesMax), 'inflated_too_large')
  })
  it('refuses bytes that are not UTF-8', () => {
    assert.equal(read(Buffer.from([0x7b, 0xff])), 'failed to decode request: invalid UTF8 in request payload')
  })
  it('stops a bomb at the bound without unpacking it in full', () => {
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
  it('bounds the output by the input, so that a bomb costs no more than the same bytes sent plain', () => {
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
  it('inflates everything when the trailer of the last member names too small a size', () => {
    const text = `"${'x'.repeat(200_000)}"`
    assert.equal(read(Buffer.concat([gzipSync(text), gzipSync(' ')])).length, text.length + 1)
  })
  it('refuses a trailer that names another size', () => {
    for (const size of [0, 1, 0xffff_ffff]) {
      const body = gzipSync(json)
      body.writeUInt32LE(size, body.length - 4)
      assert.equal(read(body), 'failed to decode request: invalid GZIP data')
    }
  })
  it('answers every input with text or an error', () => {
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
