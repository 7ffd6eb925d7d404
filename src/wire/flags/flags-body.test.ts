import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import lzString from 'lz-string'
import { takesAtMost } from '../../../tests/support/cpu-time.ts'
import { lz64Bomb } from '../../../tests/support/lz64-bomb.ts'
import { decompressedBytesMax } from './decide-errors.ts'
import { decodeFlagsBody, type FlagsBody } from './flags-body.ts'

const json = '{"token":"phc_test","distinct_id":"user-1"}'
const value = JSON.parse(json)

function decode(bytes: Buffer | string, over: Partial<FlagsBody> = {}) {
  const body = { contentType: 'application/json', contentEncoding: undefined, compression: '', ...over }
  return decodeFlagsBody({ ...body, bytes: Buffer.from(bytes) }, { decompressedBytesMax })
}

function assertDecodes(...call: Parameters<typeof decode>): void {
  assert.deepEqual(decode(...call), { ok: true, value })
}

function codeOf(...call: Parameters<typeof decode>): string {
  const result = decode(...call)
  if (result.ok) return 'ok'
  return typeof result.error === 'string' ? result.error : `${result.error.status} ${result.error.code}`
}

describe('decodeFlagsBody', () => {
  it('decompresses according to the query, the header and the first bytes', () => {
    assertDecodes(gzipSync(json), { compression: 'gzip-js', contentType: 'text/plain' })
    assertDecodes(gzipSync(json), { contentEncoding: 'x-gzip' })
    assertDecodes(gzipSync(json))
    assertDecodes(brotliCompressSync(json), { contentEncoding: 'br' })
    assertDecodes(zstdCompressSync(json), { contentEncoding: 'zstd' })
    assertDecodes(deflateSync(json), { contentEncoding: 'deflate' })
    assertDecodes(json, { contentEncoding: 'identity' })
    assertDecodes(json, { contentEncoding: 'br' })
  })

  it('decompresses lz64, on its own and in a form, announced by the query or by the form', () => {
    const lz64 = lzString.compressToBase64(json)
    for (const compression of ['lz64', 'lz-string'])
      for (const contentType of ['application/json', 'text/plain']) assertDecodes(lz64, { compression, contentType })
    const form = { contentType: 'application/x-www-form-urlencoded' }
    assertDecodes(`data=${encodeURIComponent(lz64)}&compression=lz64`, form)
    assertDecodes(`compression=lz64&data=${lz64}`, form)
    assertDecodes(`data=${encodeURIComponent(lz64)}`, { ...form, compression: 'lz64' })
    assertDecodes(lzString.compressToBase64(Buffer.from(json).toString('base64')), { compression: 'lz64' })
  })

  it('refuses lz64 that is damaged, or decompresses to too much text', () => {
    for (const body of ['nonsense', json, lzString.compressToBase64(json).slice(0, -8)])
      assert.equal(codeOf(body, { compression: 'lz-string' }), '400 invalid_json', body)
    const form = { contentType: 'application/x-www-form-urlencoded', compression: 'lz64' }
    assert.equal(codeOf(json, form), '400 invalid_json')
    const bomb = lz64Bomb(decompressedBytesMax + 1)
    assert.equal(codeOf(bomb, { compression: 'lz64' }), 'decompressed_too_large')
    assert.equal(codeOf(`data=${encodeURIComponent(bomb)}`, form), 'decompressed_too_large')
  })

  it('decodes base64 if the text is not JSON, percent-encoded or not, with or without padding', () => {
    const base64 = Buffer.from(json).toString('base64')
    assertDecodes(base64)
    assertDecodes(base64.replace(/=+$/, ''))
    assertDecodes(encodeURIComponent(base64), { compression: 'base64' })
    assert.equal(codeOf('%%%'), '400 invalid_json')
  })

  it('decodes percent sequences in either case, once in a body and twice in a form, and leaves other text unchanged', () => {
    const base64 = Buffer.from(json).toString('base64')
    const encoded = (text: string, written = (hex: string) => hex) =>
      text.replace(/./g, char => `%${written(char.charCodeAt(0).toString(16))}`)
    const form = { contentType: 'application/x-www-form-urlencoded' }
    for (const text of [encoded(base64), encoded(base64, hex => hex.toUpperCase()), base64.replaceAll('I', '%49 ')])
      for (const over of [{}, form]) assertDecodes(text, over)
    assertDecodes(encoded(`data=${base64}`), form)
    assertDecodes(`data=${encoded(base64).replaceAll('%', '%25')}`, form)
    assertDecodes(` %20${base64.slice(0, 9)} ${base64.slice(9)}%0A`)
    assert.equal(codeOf(encoded(encoded(base64))), '400 invalid_json')
    for (const broken of ['%', '%4', '%4g', '%g4', '%%41', '%\u0661\u0661'])
      for (const over of [{}, form]) assert.equal(codeOf(`${base64}${broken}`, over), '400 invalid_json', broken)
  })

  it('decodes text that consists only of percent sequences or spaces about as fast as plain base64', () => {
    const form = { contentType: 'application/x-www-form-urlencoded' }
    const often =
      (text: string, over = {}) =>
      () => {
        for (let round = 0; round < 5; round++) assert.equal(codeOf(text, over), '400 invalid_json')
      }
    const plain = often('A'.repeat(390_000))
    for (const [unit, over] of [
      ['%41', {}],
      ['%41', form],
      ['%  ', {}],
    ] as const)
      assert.ok(takesAtMost(10, often(unit.repeat(130_000), over), plain), unit)
  })

  it('reads forms with and without data=, but only with strict JSON', () => {
    const form = { contentType: 'application/x-www-form-urlencoded; charset=utf-8' }
    const base64 = Buffer.from(json).toString('base64')
    assertDecodes(`data=${base64}`, form)
    assertDecodes(base64, form)
    assert.equal(codeOf(`data=${Buffer.from('{a:1}').toString('base64')}`, form), '400 invalid_json')
    assert.equal(codeOf('data=', form), '400 invalid_json')
    assert.equal(codeOf(`data=${base64}`, { ...form, compression: 'zip' }), '400 unsupported_compression')
  })

  it('refuses what cannot be decompressed, or decompresses to too much', () => {
    assert.equal(codeOf(json, { compression: 'gzip' }), '400 invalid_compression')
    assert.equal(codeOf(gzipSync(json).subarray(0, 20)), '400 invalid_compression')
    assert.equal(codeOf(gzipSync(Buffer.alloc(5 * 1024 * 1024, ' '))), 'decompressed_too_large')
    assert.equal(
      codeOf(brotliCompressSync(Buffer.alloc(5_000_000, ' ')), { contentEncoding: 'br' }),
      'decompressed_too_large',
    )
  })

  it('refuses more values than can be parsed in time, but accepts long strings', () => {
    const withList = (list: string) => `{"token":"phc_test","distinct_id":"user-1","person_properties":{"a":${list}}}`
    assert.equal(codeOf(withList(`[${'1.0,'.repeat(500_000)}1]`)), '413 payload_too_large')
    assert.equal(codeOf('['.repeat(2_000_000)), '413 payload_too_large')
    assert.equal(codeOf('%41'.repeat(600_000)), '400 invalid_json')
    assert.equal(codeOf(withList(`"${',[\\"'.repeat(400_000)}"`)), 'ok')
    assert.equal(codeOf(withList(`[${'1,'.repeat(16_000)}1]`)), 'ok')
  })

  it('reads invalid UTF-8 with replacement characters', () => {
    const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')])
    assert.deepEqual(decode(bytes), { ok: true, value: { a: '\ufffd' } })
  })
})
