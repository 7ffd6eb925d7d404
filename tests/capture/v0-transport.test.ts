// How a v0 request may be sent: paths, methods, query, encodings, forms, CORS, limits (docs/wire/ingestion.md 1), and
// combinations of these.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import lzString from 'lz-string'
import { type CaptureRouteDeps, captureRoutes } from '#http/handlers/capture.ts'
import { type EdgeRequest, startCaptureEdge } from '../support/capture-edge.ts'
import { testToken } from '../support/capture-server.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startedForTests } from '../support/started-for-tests.ts'

const edge = startedForTests(startCaptureEdge)

const event = { api_key: testToken, event: 'e', distinct_id: 'u', properties: { a: '>>>???~~~€' } }
const body = JSON.stringify(event)
const formType = { 'content-type': 'application/x-www-form-urlencoded' }
const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes as string).toString('base64')
const inUrl = (bytes: string | Uint8Array) => encodeURIComponent(base64(bytes))
const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString()
const lz64 = lzString.compressToBase64(body)
const encoded = (encoding: string) => ({ 'content-encoding': encoding })
const paths = ['/capture', '/batch', '/e', '/i/v0/e', '/track', '/engage', '/i/v0/ai/batch'].flatMap(path => [
  path,
  `${path}/`,
])

type Row = readonly [what: string, request: EdgeRequest]

/** Requires that the event arrives as it was sent and that the answer is exactly PostHog's. */
function accepts(rows: readonly Row[]): void {
  for (const [what, request] of rows) {
    it(`accepts ${what}`, async () => {
      const answer = await edge.send(request)
      assert.deepEqual([answer.status, answer.body], [200, '{"status":"Ok"}'])
      assert.equal(answer.headers['content-type'], 'application/json')
      assert.deepEqual(
        answer.events.map(stored => [stored.name, stored.distinctId, JSON.parse(stored.propertiesJson)]),
        [[event.event, event.distinct_id, event.properties]],
      )
    })
  }
}

function refuses(rows: readonly (readonly [...Row, detail: string | RegExp, status?: number])[]): void {
  for (const [what, request, detail, status = 400] of rows) {
    it(`refuses ${what}`, async () => {
      const answer = await edge.send(request)
      assert.equal(answer.status, status, answer.body)
      if (typeof detail === 'string') assert.equal(answer.detail, detail)
      else assert.match(answer.detail, detail)
      assert.deepEqual(answer.events, [])
    })
  }
}

const notJson = /^failed to parse request: /
const notUtf8 = 'failed to decode request: invalid UTF8 in request payload'
const badGzip = 'failed to decode request: invalid GZIP data'
const badLz64 = 'failed to decode request: decompress_lz64: failed decompress to UTF16'
const badLz64Text = 'failed to decode request: decompress_lz64: failed UTF16 to UTF8 conversion'
const noForm = 'failed to decode request: expected form data in POST request payload'
const badQuery = /query string/

describe('v0 capture (paths and methods)', () => {
  accepts(paths.map(path => [`POST ${path}`, { path, body }] as const))
  accepts(paths.map(path => [`GET ${path}?data=`, { method: 'GET', path: `${path}?data=${inUrl(body)}` }] as const))
  accepts([
    ['GET with a body', { method: 'GET', path: '/e/', body }],
    ['a body whatever its authorization', { body, headers: { authorization: 'Bearer phx_x' } }],
    ...['text/plain', 'nonsense', ';;', 'application/json; charset=utf-8'].map(
      type => [`JSON as ${type}`, { headers: { 'content-type': type }, body }] as const,
    ),
    ['a base address with a final slash', { path: '//batch/', body }],
  ])
  refuses(
    paths.map(path => [`GET ${path} of nothing`, { method: 'GET', path }, 'request missing data payload'] as const),
  )
  refuses([
    ['POST of nothing', { path: '/e/' }, 'request missing data payload'],
    [
      'a GET whose body is too long',
      { method: 'GET', path: '/e/', body: ' '.repeat(20 * 1024 * 1024 + 1) },
      /20971520/,
      413,
    ],
    ...['/E/', '/capture/x', '/batch/1', '/i/v0', '/nope'].map(path => [path, { path, body }, /./, 404] as const),
    ...['HEAD', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'].map(
      method => [method, { method, path: '/batch' }, /^/, 405] as const,
    ),
  ])
})

describe('v0 capture (query)', () => {
  const twoTimes = { path: '/e/?_=1751367610000&sent_at=1751367610000', body }
  accepts([
    ['a body beside empty data', { path: '/e/?data=', body }],
    ['data before a body', { path: `/e/?data=${inUrl(body)}`, body: 'ignored' }],
    ['data with blanks that were plus signs', { path: `/e/?data=${base64(body).replaceAll('=', '%3D')}` }],
    ['data that is JSON', { path: `/e/?data=${encodeURIComponent(body)}` }],
    ['an unknown compression and version', { path: '/e/?compression=snappy&v=3&ip=0', body }],
    ['beacon=0', { path: '/e/?beacon=0', body }],
    ['beacon=2', { path: '/e/?beacon=2', body }],
  ])
  refuses([['both send times', twoTimes, badQuery]])
  it('answers beacon=1 with 204 and an empty body, but with 200 when no event was stored', async () => {
    for (const path of paths) {
      const sent = await edge.send({ path: `${path}?beacon=1`, body })
      assert.deepEqual([sent.status, sent.body, sent.events.length], [204, '', 1], path)
    }
    const nothing = JSON.stringify({ ...event, event: '$performance_event' })
    const left = await edge.send({ path: '/e/?beacon=1', body: nothing })
    assert.deepEqual([left.status, left.body, left.events.length], [200, '{"status":"Ok"}', 0])
    assert.equal((await edge.send({ path: '/e/?beacon=1', body: '{"event":"e","distinct_id":"u"}' })).status, 401)
  })
})

describe('v0 capture (compression and base64)', () => {
  const gz = gzipSync(body)
  const named = (size: number) => {
    const bytes = gzipSync(body)
    bytes.writeUInt32LE(size, bytes.length - 4)
    return bytes
  }
  const asLz64 = (text: string) => ({ path: '/e/?compression=lz64', body: text })
  accepts([
    ['gzip by ?compression=GZip-JS', { path: '/batch?compression=GZip-JS', body: gz }],
    ['gzip by header and query', { path: '/e/?compression=gzip', headers: encoded('gzip'), body: gz }],
    ['gzip of base64 on an old path', { path: '/track', body: gzipSync(base64(body)) }],
    ['GET with base64 of gzip', { method: 'GET', path: `/e/?compression=gzip-js&data=${inUrl(gz)}` }],
    ['JSON under an encoding in capitals', { headers: encoded('GZIP'), body }],
    ['JSON under two encodings', { headers: encoded('gzip, gzip'), body }],
    ['JSON that the query says is base64, under gzip', { path: '/e/?compression=b64', headers: encoded('gzip'), body }],
    ...['base64', 'B64'].map(hint => [hint, { path: `/i/v0/e?compression=${hint}`, body: base64(body) }] as const),
    ['br', { headers: encoded('br'), body: brotliCompressSync(body) }],
    ['zstd', { headers: encoded('zstd'), body: zstdCompressSync(body) }],
    ['deflate', { headers: encoded('deflate'), body: deflateSync(body) }],
    ['raw deflate', { headers: encoded('deflate'), body: deflateRawSync(body) }],
    ...['br', 'zstd', 'deflate', 'identity', 'lz4', '__proto__'].map(
      encoding => [`JSON under ${encoding}`, { headers: encoded(encoding), body }] as const,
    ),
    // To raw deflate, its first bytes are a whole stream.
    ['JSON in lines under deflate', { headers: encoded('deflate'), body: JSON.stringify(event, null, 2) }],
    ['gzip in two members', { body: Buffer.concat([gzipSync(body.slice(0, 9)), gzipSync(body.slice(9))]) }],
    ['base64 of gzip', { body: base64(gz) }],
    ['base64 on any path', { path: '/batch', body: base64(body) }],
    ['base64 of base64 on an old path', { body: base64(base64(body)) }],
    ['gzip that a query calls lz64', { path: '/e/?compression=lz64', body: gz }],
    ...['lz64', 'lz-string', 'LZ64'].map(
      name => [`lz64 by ?compression=${name}`, { path: `/batch?compression=${name}`, body: lz64 }] as const,
    ),
    ['lz64 by header', { path: '/batch', headers: encoded('lz64'), body: lz64 }],
    ['lz64 in data', { path: `/e/?compression=lz64&data=${encodeURIComponent(lz64)}` }],
    [
      'lz64 named by a form',
      { path: '/batch', headers: formType, body: form({ compression: 'LZ-String', data: lz64 }) },
    ],
    ['lz64 of base64 on an old path', { path: '/e/?compression=lz64', body: lzString.compressToBase64(base64(body)) }],
  ])
  refuses([
    ['JSON that a header calls gzip', { headers: encoded('gzip'), body }, badGzip],
    ['GET with base64 of JSON that a query calls gzip', { path: `/e/?compression=gzip&data=${inUrl(body)}` }, badGzip],
    ['half of gzip', { body: gz.subarray(0, 40) }, badGzip],
    ...[0, 1, 0xffff_ffff].map(size => [`a trailer that names ${size} bytes`, { body: named(size) }, badGzip] as const),
    ['gzip with trailing bytes', { body: Buffer.concat([gz, Buffer.from('behind')]) }, badGzip],
    ['gzip of gzip', { body: gzipSync(gz) }, 'failed to decode request: invalid gzip data'],
    ['the first bytes of gzip, and another method', { body: Buffer.from([0x1f, 0x8b, 9]) }, notUtf8],
    ['gzip of base64 off the old paths', { path: '/batch', body: gzipSync(base64(body)) }, notJson],
    ['base64 of base64 off the old paths', { path: '/batch', body: base64(base64(body)) }, notJson],
    ['text that only looks like base64', { body: 'abc=abcd' }, notJson],
    ['base64 with a line break', { body: `${base64(body)}\n` }, notJson],
    ['base64 of URLs', { body: Buffer.from(body).toString('base64url') }, notJson],
    ['a byte order mark', { body: `\ufeff${body}` }, notJson],
    ['UTF-16', { body: Buffer.from(body, 'utf16le') }, notUtf8],
    ['lz64 by header in capitals', { headers: encoded('LZ64'), body: lz64 }, notUtf8],
    ...[body, lz64.slice(0, -9), '===='].map(text => [`${text.slice(0, 9)} as lz64`, asLz64(text), badLz64] as const),
    ['lz64 of half a character', asLz64(lzString.compressToBase64('"\ud800"')), badLz64Text],
  ])
})

describe('v0 capture (forms)', () => {
  accepts([
    ['plus signs that became blanks', { headers: formType, body: `data=${base64(body)}` }],
    [
      'a form that begins with another field',
      { headers: formType, body: form({ ip: '1', x: 'y'.repeat(200), data: body }) },
    ],
    ['a field within 128 bytes', { headers: formType, body: `x=${'y'.repeat(119)}&data=${encodeURIComponent(body)}` }],
    ['a form under another type', { headers: { 'content-type': 'text/plain' }, body: form({ data: base64(body) }) }],
    ['JSON in a form', { headers: formType, body: form({ data: body }) }],
    [
      'base64 of gzip in a form',
      { path: '/e/?compression=gzip-js', headers: formType, body: form({ data: base64(gzipSync(body)) }) },
    ],
    ['lz64 in a form', { path: '/batch?compression=lz64', headers: formType, body: `data=${lz64}` }],
    ['base64 of a form', { headers: formType, body: base64(form({ data: body })) }],
    [
      'JSON under a form type with a charset',
      { headers: { 'content-type': `${formType['content-type']}; charset=utf-8` }, body },
    ],
  ])
  refuses([
    ['JSON under it', { headers: formType, body }, noForm],
    ['data twice', { headers: formType, body: 'data=a&data=b' }, /invalid urlencoded form data/],
    ['base64 of JSON under it', { headers: formType, body: base64(body) }, noForm],
    [
      'a field after 128 bytes',
      { headers: formType, body: `x=${'y'.repeat(130)}&data=${encodeURIComponent(body)}` },
      noForm,
    ],
    ['a form without data', { headers: formType, body: 'ip=1&x=2' }, notJson],
    ['empty data', { headers: formType, body: 'data=' }, notJson],
    [
      'JSON that gzip was announced for',
      { path: '/e/?compression=gzip', headers: formType, body: form({ data: body }) },
      badGzip,
    ],
    [
      'base64 of the first bytes of gzip, and another method',
      { path: '/e/?compression=gzip', headers: formType, body: form({ data: base64(Buffer.from([0x1f, 0x8b, 9])) }) },
      badGzip,
    ],
  ])
})

// Without these headers, the browser hides the answer from a page of another origin, and its SDK sends accepted events
// again. Source: docs/wire/ingestion.md 1.3; docs/wire/clients.md 1 rules 2, 3, 24.
describe('v0 capture (CORS, limits and stalled clients)', () => {
  const origin = 'https://shop.example'
  it('allows pages of every origin, on errors too, and never with a wildcard', async () => {
    const requests: [EdgeRequest, number][] = [
      [{ body }, 200],
      [{ path: '/e/?beacon=1', body }, 204],
      [{ body: '{' }, 400],
      [{ path: '/e/?_=soon', body }, 400],
      [{ body: body.replace(testToken, 'phc_other') }, 401],
      [{ path: '/nope', body }, 404],
      [{ method: 'PUT', body }, 405],
      [{ method: 'PROPFIND', body }, 405],
      [{ body: ' '.repeat(20 * 1024 * 1024 + 1) }, 413],
      [{ body: gzipSync(Buffer.alloc(101 * 1024 * 1024, 0x20), { level: 1 }) }, 413],
    ]
    for (const [request, status] of requests) {
      const answer = await edge.send({ ...request, headers: { origin } })
      assert.equal(answer.status, status)
      const {
        'access-control-allow-origin': allowed,
        'access-control-allow-credentials': credentials,
        vary,
      } = answer.headers
      assert.deepEqual([allowed, credentials], [origin, 'true'], String(status))
      assert.equal(vary, 'origin, access-control-request-method, access-control-request-headers')
    }
  })
  it('answers every preflight with 200 and the requested headers', async () => {
    for (const path of paths) {
      const asked = {
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type, traceparent',
      }
      const answer = await edge.send({ method: 'OPTIONS', path, headers: { origin, ...asked } })
      assert.equal(answer.status, 200)
      assert.equal(answer.headers['access-control-allow-headers'], 'content-type, traceparent')
      assert.equal(answer.headers['access-control-allow-methods'], 'GET, POST, OPTIONS')
    }
    assert.equal((await edge.send({ method: 'OPTIONS' })).status, 200)
  })
  it('accepts a body of exactly 20 MiB as sent', async () => {
    const answer = await edge.send({ body: body.padEnd(20 * 1024 * 1024 - 2) })
    assert.deepEqual([answer.status, answer.events.length], [200, 1])
    const over = await edge.send({ body: ' '.repeat(20 * 1024 * 1024 + 1) })
    assert.equal(over.detail, 'maximum event size exceeded: Request body exceeds limit of 20971520 bytes')
  })
  it('answers 408 to a client that stops sending', () => {
    const stalled = fieldOf(captureRoutes({} as CaptureRouteDeps), 'stalled')
    assert.ok(stalled.length >= 14)
    for (const error of stalled) assert.deepEqual([error?.status, error?.detail], [408, 'client stopped sending data'])
  })
})
