import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { decodeFlagsBody, type FlagsBody } from './flags-body.ts'

const json = '{"token":"phc_test","distinct_id":"user-1"}'
const value = JSON.parse(json)

function decode(bytes: Buffer | string, over: Partial<FlagsBody> = {}) {
  const body = { contentType: 'application/json', contentEncoding: undefined, compression: '', ...over }
  return decodeFlagsBody({ ...body, bytes: Buffer.from(bytes) }, text =>
    text.startsWith('lz:') ? text.slice(3) : null,
  )
}

function assertDecodes(...call: Parameters<typeof decode>): void {
  assert.deepEqual(decode(...call), { ok: true, value })
}

function codeOf(...call: Parameters<typeof decode>): string {
  const result = decode(...call)
  return result.ok ? 'ok' : `${result.error.status} ${result.error.code}`
}

describe('decodeFlagsBody', () => {
  it('decompresses by hint, by header and by the first bytes', () => {
    assertDecodes(gzipSync(json), { compression: 'gzip-js', contentType: 'text/plain' })
    assertDecodes(gzipSync(json), { contentEncoding: 'x-gzip' })
    assertDecodes(gzipSync(json))
    assertDecodes(brotliCompressSync(json), { contentEncoding: 'br' })
    assertDecodes(zstdCompressSync(json), { contentEncoding: 'zstd' })
    assertDecodes(deflateSync(json), { contentEncoding: 'deflate' })
    assertDecodes(json, { contentEncoding: 'identity' })
    assertDecodes(json, { contentEncoding: 'br' })
  })

  it('hands lz64 to whoever can read it, and refuses it without', () => {
    assertDecodes(`lz:${json}`, { compression: 'lz64' })
    const form = { contentType: 'application/x-www-form-urlencoded' }
    assertDecodes(`data=${encodeURIComponent(`lz:${json}`)}&compression=lz64`, form)
    assert.equal(codeOf('nonsense', { compression: 'lz-string' }), '400 invalid_json')
    const without = decodeFlagsBody({
      bytes: Buffer.from(json),
      contentType: undefined,
      contentEncoding: undefined,
      compression: 'lz64',
    })
    assert.ok(!without.ok && without.error.code === 'unsupported_compression')
  })

  it('takes base64 where JSON fails, percent-encoded or not, with or without padding', () => {
    const base64 = Buffer.from(json).toString('base64')
    assertDecodes(base64)
    assertDecodes(base64.replace(/=+$/, ''))
    assertDecodes(encodeURIComponent(base64), { compression: 'base64' })
    assert.equal(codeOf('%%%'), '400 invalid_json')
  })

  it('reads forms with and without data=, in strict JSON only', () => {
    const form = { contentType: 'application/x-www-form-urlencoded; charset=utf-8' }
    const base64 = Buffer.from(json).toString('base64')
    assertDecodes(`data=${base64}`, form)
    assertDecodes(base64, form)
    assert.equal(codeOf(`data=${Buffer.from('{a:1}').toString('base64')}`, form), '400 invalid_json')
    assert.equal(codeOf('data=', form), '400 invalid_json')
    assert.equal(codeOf(`data=${base64}`, { ...form, compression: 'zip' }), '400 unsupported_compression')
  })

  it('refuses what does not decompress, or to too much', () => {
    assert.equal(codeOf(json, { compression: 'gzip' }), '400 invalid_compression')
    assert.equal(codeOf(gzipSync(json).subarray(0, 20)), '400 invalid_compression')
    assert.equal(codeOf(gzipSync(Buffer.alloc(5 * 1024 * 1024, ' '))), '413 payload_too_large')
    assert.equal(
      codeOf(brotliCompressSync(Buffer.alloc(5_000_000, ' ')), { contentEncoding: 'br' }),
      '413 payload_too_large',
    )
  })

  it('refuses more values than can be parsed in time, and takes long texts', () => {
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
