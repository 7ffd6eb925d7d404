// CORS on the capture paths. Without these headers, the browser hides the answer from a page of another origin, and its
// SDK sends accepted events again. Source: docs/wire/ingestion.md 1.3; docs/wire/clients.md 1 rules 2, 3, 24.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { PortError } from '#ports/port-error.ts'
import { startCaptureServer, testToken } from '../support/capture-server.ts'

const origin = 'https://shop.example'
const paths = ['/capture', '/batch', '/e', '/i/v0/e', '/track', '/engage', '/i/v0/ai/batch'].flatMap(path => [
  path,
  `${path}/`,
])
const event = JSON.stringify({ api_key: testToken, event: 'e', distinct_id: 'u' })

function assertReadable(response: Response, what: string): void {
  assert.equal(response.headers.get('access-control-allow-origin'), origin, what)
  assert.equal(response.headers.get('access-control-allow-credentials'), 'true', what)
  assert.match(response.headers.get('vary') ?? '', /\borigin\b/i, what)
}

describe('capture paths, called by a page of another origin', () => {
  it('allow the requested headers in every preflight', async t => {
    const server = await startCaptureServer(t)
    for (const path of paths) {
      const response = await fetch(server.url + path, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type,traceparent',
        },
      })
      assert.equal(response.status, 200, path)
      assertReadable(response, path)
      assert.equal(response.headers.get('access-control-allow-headers'), 'content-type,traceparent')
      assert.match(response.headers.get('access-control-allow-methods') ?? '', /\bPOST\b/)
    }
  })

  it('accept with exactly 200 on every path, and with 204 for beacons only', async t => {
    const server = await startCaptureServer(t)
    for (const path of paths) {
      const response = await server.post(path, event, { origin })
      assert.deepEqual([response.status, await response.text()], [200, '{"status":"Ok"}'], path)
      assertReadable(response, path)
      const beacon = await server.post(`${path}?beacon=1`, event, { origin })
      assert.deepEqual([beacon.status, await beacon.text()], [204, ''], path)
      assertReadable(beacon, path)
    }
    assert.equal((await server.records()).events.length, 2 * paths.length)
  })

  it('let the page read every rejection', async t => {
    const server = await startCaptureServer(t)
    const refused: readonly (readonly [status: number, path: string, body: string | Uint8Array<ArrayBuffer>])[] = [
      [400, '/e/?_=soon', event],
      [400, '/e/', ''],
      [400, '/e/', '{'],
      [400, '/e/?beacon=1', '{'],
      [400, '/batch/', JSON.stringify({ api_key: testToken, batch: [{ event: 'e' }] })],
      [401, '/e/', '{"event":"e","distinct_id":"u"}'],
      [401, '/e/', '{"api_key":"phc_unknown","event":"e","distinct_id":"u"}'],
      [413, '/e/', Buffer.alloc(21 * 1024 * 1024, 0x20)],
      [413, '/e/', gzipSync(Buffer.alloc(101 * 1024 * 1024, 0x20), { level: 1 })],
    ]
    for (const [status, path, body] of refused) {
      const response = await server.post(path, body, { origin })
      assert.equal(response.status, status, path)
      assertReadable(response, `${status} ${path}`)
      assert.notEqual(((await response.json()) as { detail: string }).detail, '')
    }
    for (const method of ['PUT', 'PROPFIND']) {
      const unknown = await fetch(`${server.url}/e/`, { method, headers: { origin }, body: event })
      assert.equal(unknown.status, 405)
      assertReadable(unknown, method)
    }
  })

  it('let the page read that it should retry later', async t => {
    const server = await startCaptureServer(t, {
      wrapLog: log => ({ ...log, append: () => Promise.reject(new PortError('event-log', 'unavailable')) }),
    })
    const response = await server.post('/e/', event, { origin })
    assert.equal(response.status, 503)
    assertReadable(response, '503')
    assert.match(response.headers.get('retry-after') ?? '', /^\d+$/)
  })
})
