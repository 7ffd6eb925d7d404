// `/ui/`: the page of the screens and its assets, served from a folder with builds.

import assert from 'node:assert/strict'
import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type Scope, tempDir } from '../support/temp-dir.ts'
import { serveScreens } from '../ui/support/built-screens.ts'

let buildCount = 0

/** Makes a build the newest one, as `scripts/ensure-screens.mjs` does. */
function writeBuild(folder: string, stamp: string, assets: Readonly<Record<string, string>>): void {
  mkdirSync(join(folder, stamp, 'assets'), { recursive: true })
  for (const [name, text] of Object.entries(assets)) {
    const path = join(folder, stamp, 'assets', name)
    writeFileSync(path, text)
    writeFileSync(`${path}.br`, brotliCompressSync(text))
    writeFileSync(`${path}.gz`, gzipSync(text))
  }
  const scripts = Object.keys(assets).map(name => `<script nonce="CSP_NONCE" src="/ui/assets/${name}"></script>`)
  writeFileSync(join(folder, stamp, 'index.html'), `<meta property="csp-nonce" nonce="CSP_NONCE">${scripts.join('')}`)
  const current = join(folder, 'current.json')
  writeFileSync(current, JSON.stringify({ stamp, sources: [] }))
  const atSeconds = 1_800_000_000 + buildCount++
  utimesSync(current, atSeconds, atSeconds)
}

async function serveBuilds(t: Scope) {
  const folder = tempDir(t)
  let drawnCount = 0
  const url = await serveScreens(t, folder, size => Buffer.alloc(size, drawnCount++))
  const ask = async (path: string, encoding = 'identity', method = 'GET') => {
    const response = await fetch(url + path, { method, headers: { 'accept-encoding': encoding } })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return { folder, ask }
}

describe('/ui/', () => {
  it('is the page under every address that is not a file, with another nonce in each answer', async t => {
    const { folder, ask } = await serveBuilds(t)
    writeBuild(folder, 'a', { 'index-1.js': 'one' })
    const nonces = new Set<string>()
    for (const path of [
      '/ui',
      '/ui/',
      '/ui/p/1/flags/12-new-checkout',
      '/ui/p/1/flags?q=a.b',
      '/ui/p/1/persons/x.js',
    ]) {
      const { status, headers, text } = await ask(path)
      assert.equal(status, 200, path)
      assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
      assert.equal(headers.get('cache-control'), 'no-store')
      const nonce = /<meta property="csp-nonce" nonce="([^"]+)">/.exec(text)![1]!
      assert.match(headers.get('content-security-policy')!, new RegExp(`script-src 'nonce-${RegExp.escape(nonce)}' `))
      assert.ok(!text.includes('CSP_NONCE'))
      nonces.add(nonce)
    }
    assert.equal(nonces.size, 5)
  })

  it('forbids everything that the screens do not need', async t => {
    const { folder, ask } = await serveBuilds(t)
    writeBuild(folder, 'a', { 'index-1.js': 'one' })
    const { headers } = await ask('/ui/')
    const policy = headers.get('content-security-policy')!
    assert.doesNotMatch(policy, /unsafe|\*|https?:|data:|blob:/)
    for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "trusted-types 'none'"])
      assert.ok(policy.split('; ').includes(part), part)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'same-origin')
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
    assert.equal(headers.get('access-control-allow-origin'), null)
  })

  it('serves assets compressed as the browser accepts, to be kept for ever', async t => {
    const { folder, ask } = await serveBuilds(t)
    writeBuild(folder, 'a', { 'index-1.js': 'one', 'index-1.css': 'two', 'icons-1.svg': 'three' })
    const types = { 'index-1.js': 'text/javascript', 'index-1.css': 'text/css', 'icons-1.svg': 'image/svg+xml' }
    for (const [name, type] of Object.entries(types))
      for (const encoding of ['br', 'gzip', 'identity']) {
        const { status, headers } = await ask(`/ui/assets/${name}`, encoding)
        assert.equal(status, 200)
        assert.equal(headers.get('content-type')!.split(';')[0], type)
        assert.equal(headers.get('content-encoding') ?? 'identity', encoding)
        assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
        assert.equal(headers.get('vary'), 'Accept-Encoding')
        assert.equal(headers.get('x-content-type-options'), 'nosniff')
        assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
      }
    assert.equal((await ask('/ui/assets/index-1.js', 'br, gzip')).text, 'one')
  })

  it('answers 404 in JSON, never the page, to the name of an asset that is not there', async t => {
    const { folder, ask } = await serveBuilds(t)
    writeBuild(folder, 'a', { 'index-1.js': 'one' })
    for (const name of [
      'index-2.js',
      'index-1.js.br',
      'a/index-1.js',
      '',
      '..%2Fcurrent.json',
      '..%2F..%2Fetc%2Fpasswd',
      'index.html',
    ]) {
      const { status, headers } = await ask(`/ui/assets/${name}`)
      assert.equal(status, 404, name)
      assert.equal(headers.get('content-type'), 'application/json')
    }
  })

  it('serves a build that is made meanwhile, and still the assets of the one before', async t => {
    const { folder, ask } = await serveBuilds(t)
    const missing = await ask('/ui/')
    assert.equal(missing.status, 503)
    assert.match(missing.text, /The screens are not built.*npm run ui:build/s)
    assert.match(missing.headers.get('content-security-policy')!, /^default-src 'none'/)
    writeBuild(folder, 'a', { 'index-1.js': 'one' })
    assert.match((await ask('/ui/')).text, /index-1\.js/)
    writeBuild(folder, 'b', { 'index-2.js': 'two' })
    assert.match((await ask('/ui/')).text, /index-2\.js/)
    assert.equal((await ask('/ui/assets/index-1.js')).text, 'one')
    assert.equal((await ask('/ui/assets/index-2.js')).text, 'two')
    rmSync(folder, { recursive: true })
    assert.match((await ask('/ui/')).text, /index-2\.js/)
    assert.equal((await ask('/ui/assets/index-2.js')).text, 'two')
  })
})
