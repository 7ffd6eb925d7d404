import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'

// The scripts that a page loads before it sends anything. Source: docs/wire/evaluation.md 7.6; docs/wire/clients.md 10.

const dist = fileURLToPath(new URL('.', import.meta.resolve('posthog-js')))
const { version } = JSON.parse(readFileSync(`${dist}../package.json`, 'utf8')) as { version: string }
const pageOrigin = 'https://shop.example'

const front = startedForTests(startFront)

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly text: string
}

/** Requests as a page of another origin, without unpacking the answer. */
async function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const response = await fetch(front.url + path, {
    method,
    redirect: 'manual',
    headers: { origin: pageOrigin, 'accept-encoding': 'identity', ...headers },
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes, text: bytes.toString() }
}

function assertOpenToPages({ headers }: Answer): void {
  assert.equal(headers.get('access-control-allow-origin'), pageOrigin)
  assert.equal(headers.get('access-control-allow-credentials'), 'true')
  assert.match(headers.get('vary') ?? '', /origin/i)
}

/** The globals that a script sets in a page. */
function configSetBy(script: string, token: string): { config: Record<string, unknown>; siteApps: unknown[] } {
  const window: { _POSTHOG_REMOTE_CONFIG?: Record<string, never> } = {}
  runInNewContext(script, { window })
  return window._POSTHOG_REMOTE_CONFIG![token]!
}

describe('the configuration of a project', () => {
  const path = `/array/${testProjectKey}/config`

  it('identifies the project and turns off features that do not exist', async () => {
    for (const spelling of [path, `${path}/`, `${path}?ip=0&_=1`]) {
      const answer = await ask(spelling)
      assert.equal(answer.status, 200)
      assertOpenToPages(answer)
      assert.equal(answer.headers.get('content-type'), 'application/json')
      assert.equal(answer.headers.get('cache-control'), 'public, max-age=300')
      assert.deepEqual(JSON.parse(answer.text), {
        token: testProjectKey,
        supportedCompression: ['gzip', 'gzip-js'],
        hasFeatureFlags: false,
        config: { enable_collect_everything: true },
        toolbarParams: {},
        isAuthenticated: false,
        sessionRecording: false,
        surveys: false,
        heatmaps: false,
        capturePerformance: false,
        autocaptureExceptions: false,
        autocapture_opt_out: false,
        captureDeadClicks: false,
        analytics: { endpoint: '/i/v0/e/' },
        elementsChainAsString: true,
        errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
        defaultIdentifiedOnly: true,
        siteApps: [],
      })
    }
  })

  it('has the same content as a script and as JSON', async () => {
    const script = await ask(`${path}.js`)
    assert.equal(script.status, 200)
    assertOpenToPages(script)
    assert.match(script.headers.get('content-type') ?? '', /^application\/javascript/)
    assert.equal(script.headers.get('cache-control'), 'public, max-age=300')
    assert.match(script.headers.get('vary') ?? '', /^Origin, Referer\b/)
    const set = configSetBy(script.text, testProjectKey)
    assert.deepEqual(JSON.parse(JSON.stringify(set)), { config: JSON.parse((await ask(path)).text), siteApps: [] })
  })

  it('is followed by the library in array.js, compressed or not', async () => {
    const script = (await ask(`${path}.js`)).text
    const library = readFileSync(`${dist}array.js`, 'utf8')
    const bundle = `/array/${testProjectKey}/array.js`
    const plain = await ask(bundle)
    assert.equal(plain.text, script + library)
    const packed = await ask(bundle, { 'accept-encoding': 'br, gzip' })
    assert.equal(packed.headers.get('content-encoding'), 'gzip')
    assert.equal(gunzipSync(await rawBody(bundle, 'br, gzip')).toString(), script + library)
    assert.notEqual(packed.headers.get('etag'), plain.headers.get('etag'))
    const again = await ask(bundle, { 'accept-encoding': 'gzip', 'if-none-match': packed.headers.get('etag')! })
    assert.equal(again.status, 304)
  })

  it('sets hasFeatureFlags while the project has an active flag', async () => {
    const flags = '/api/projects/@current/feature_flags/'
    const hasFlags = async () => (JSON.parse((await ask(path)).text) as { hasFeatureFlags: boolean }).hasFeatureFlags
    const before = await ask(path)
    const { id } = await front.api<{ id: number }>('POST', flags, {
      key: 'first',
      filters: { groups: [{ properties: [], rollout_percentage: 0 }] },
    })
    assert.equal(await hasFlags(), true)
    assert.equal(configSetBy((await ask(`${path}.js`)).text, testProjectKey).config.hasFeatureFlags, true)
    assert.equal((await ask(path, { 'if-none-match': before.headers.get('etag')! })).status, 200)
    await front.api('PATCH', `${flags}${id}/`, { active: false })
    assert.equal(await hasFlags(), false)
    await front.api('PATCH', `${flags}${id}/`, { active: true })
    assert.equal(await hasFlags(), true)
    await front.api('DELETE', `${flags}${id}/`)
    assert.equal(await hasFlags(), false)
    assert.equal((await ask(path)).headers.get('etag'), before.headers.get('etag'))
  })

  it('is answered with 304 if the client already has it, by entity tag or date', async () => {
    const dated = await eventually(
      async () => {
        const answer = await ask(path)
        return answer.headers.has('last-modified') ? answer : null
      },
      { what: 'a second to pass' },
    )
    const etag = dated.headers.get('etag')!
    const lastModified = dated.headers.get('last-modified')!
    assert.ok(Date.parse(lastModified) <= Date.parse(dated.headers.get('date')!))
    for (const headers of [
      { 'if-none-match': etag },
      { 'if-none-match': etag, 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
      { 'if-modified-since': lastModified },
    ] as Record<string, string>[]) {
      const answer = await ask(path, headers)
      assert.equal(answer.status, 304, JSON.stringify(headers))
      assert.equal(answer.text, '')
      assert.equal(answer.headers.get('etag'), etag)
      assertOpenToPages(answer)
    }
    for (const headers of [
      { 'if-none-match': '"another"', 'if-modified-since': lastModified },
      { 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
      { 'if-modified-since': 'yesterday' },
    ] as Record<string, string>[]) {
      assert.equal((await ask(path, headers)).status, 200, JSON.stringify(headers))
    }
  })

  it('is a script that turns everything off, or 404 as JSON, both uncached, if the key is unknown', async () => {
    const longest = 'a'.repeat(200)
    for (const token of ['phc_of_nobody', longest, '__proto__']) {
      const json = await ask(`/array/${token}/config`)
      assert.equal(json.status, 404)
      assert.equal((JSON.parse(json.text) as { code: string }).code, 'unknown_api_key')
      assertOpenToPages(json)
      const script = await ask(`/array/${token}/config.js`)
      assert.equal(script.status, 200)
      const bundle = await ask(`/array/${token}/array.js`, { 'accept-encoding': 'gzip' })
      assert.equal(bundle.status, 200)
      assert.ok(bundle.text.startsWith(script.text))
      for (const answer of [json, script, bundle]) assert.equal(answer.headers.get('cache-control'), 'no-store')
      assert.equal(configSetBy(script.text, token).config.hasFeatureFlags, false)
    }
  })

  it('accepts a project key of any form, and escapes it safely for pages', async () => {
    const token = `a.b"]<!--<script>'\\;$\u007e`
    await front.api('POST', '/api/projects/', { name: 'of other form', api_token: token })
    const address = `/array/${encodeURIComponent(token)}`
    const json = await ask(`${address}/config`)
    assert.equal(json.status, 200)
    assert.equal((JSON.parse(json.text) as { token: string }).token, token)
    for (const name of ['config.js', 'array.js']) {
      const script = await ask(`${address}/${name}`)
      assert.equal(script.status, 200)
      const setting = script.text.split('\n')[0]!
      assert.equal(configSetBy(setting, token).config.token, token)
      assert.ok(!setting.includes('<'))
    }
  })

  it('has no Last-Modified during the second of a change, since two versions could share that second', async () => {
    const { api_token: token } = await front.api<{ api_token: string }>('POST', '/api/projects/', { name: 'just made' })
    const headers = { 'if-modified-since': new Date(Date.now() + 3_600_000).toUTCString() }
    const answer = await ask(`/array/${token}/config`, headers)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('last-modified'), null)
    const later = async () => (await ask(`/array/${token}/config`, headers)).status === 304
    await eventually(later, { what: 'the next second' })
  })

  it('is refused for a malformed key with an error in JSON, whatever markup the key contains', async () => {
    for (const token of ['a'.repeat(201), 'a b', '%3C%2Fscript%3E', '%22%5D', '%E2%80%A8', 'a.b']) {
      for (const name of ['config', 'config.js', 'array.js']) {
        const answer = await ask(`/array/${token}/${name}`)
        assert.equal(answer.status, 400, `${token} ${name}`)
        assert.equal((JSON.parse(answer.text) as { code: string }).code, 'invalid_api_key')
        assertOpenToPages(answer)
      }
    }
  })
})

describe('static scripts', () => {
  const kinds = [
    ...['array.js', 'surveys.js', 'recorder.js', 'recorder-v2.js', 'lazy-recorder.js', 'posthog-recorder.js'],
    ...['dead-clicks-autocapture.js', 'web-vitals.js', 'web-vitals-with-attribution.js', 'web-vitals-soft-navs.js'],
    ...[
      'web-vitals-with-attribution-soft-navs.js',
      'exception-autocapture.js',
      'tracing-headers.js',
      'product-tours.js',
    ],
    ...['conversations.js', 'logs.js', 'element-inference.js', 'intercom-integration.js', 'crisp-chat-integration.js'],
    ...['customizations.full.js', 'loader.js', 'toolbar.js', 'array.js.map', 'array.full.js'],
  ]

  it('include every script that a version of the library requests, under each of its names', async () => {
    for (const kind of kinds) {
      for (const path of [`/static/${kind}`, `/static/${kind}?v=1.57.4`, `/static/${version}/${kind}`]) {
        const answer = await ask(path)
        assert.equal(answer.status, 200, path)
        assertOpenToPages(answer)
        assert.match(answer.headers.get('content-type') ?? '', kind.endsWith('.map') ? /json/ : /javascript/)
        if (kind !== 'toolbar.js') assert.deepEqual(answer.bytes, readFileSync(dist + kind), path)
      }
    }
    assert.equal((await ask('/static/1/array.js')).status, 200)
  })

  it('are cached forever with a version in the URL, and otherwise for an hour', async () => {
    const kept = async (path: string) => (await ask(path)).headers.get('cache-control')
    assert.equal(await kept(`/static/${version}/array.js`), 'public, max-age=31536000, immutable')
    assert.equal(await kept(`/static/surveys.js?v=${version}`), 'public, max-age=31536000, immutable')
    for (const path of ['/static/array.js', '/static/1/array.js', '/static/surveys.js?v=1.116.6']) {
      assert.equal(await kept(path), 'public, max-age=3600', path)
    }
  })

  it('are compressed as the client accepts, with an entity tag per encoding', async () => {
    const library = readFileSync(`${dist}array.js`)
    const tags = new Set<string>()
    for (const [accepted, encoding, unpack] of [
      ['identity', null, (bytes: Buffer) => bytes],
      ['gzip', 'gzip', gunzipSync],
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync],
    ] as const) {
      const answer = await ask('/static/array.js', { 'accept-encoding': accepted })
      assert.equal(answer.headers.get('content-encoding'), encoding)
      assert.match(answer.headers.get('vary') ?? '', /accept-encoding/i)
      assert.deepEqual(unpack(await rawBody('/static/array.js', accepted)), library)
      const etag = answer.headers.get('etag')!
      assert.match(etag, /^"[^"]+"$/)
      tags.add(etag)
      const again = await ask('/static/array.js', { 'accept-encoding': accepted, 'if-none-match': etag })
      assert.deepEqual([again.status, again.text, again.headers.get('etag')], [304, '', etag])
      assertOpenToPages(again)
    }
    assert.equal(tags.size, 3)
  })

  it('work for a page that configures the host with a trailing slash', async () => {
    for (const path of ['//static/array.js', `//array/${testProjectKey}/config.js`, `//static/${version}/surveys.js`]) {
      assert.equal((await ask(path)).status, 200, path)
    }
  })

  it('answer HEAD with the size, and answer CORS preflights', async () => {
    const head = await ask('/static/array.js', {}, 'HEAD')
    assert.equal(head.headers.get('content-length'), String(readFileSync(`${dist}array.js`).length))
    assert.equal(head.text, '')
    const preflight = await ask('/static/array.js', { 'access-control-request-headers': 'traceparent' }, 'OPTIONS')
    assert.equal(preflight.status, 200)
    assertOpenToPages(preflight)
    assert.equal(preflight.headers.get('access-control-allow-headers'), 'traceparent')
    assert.equal(preflight.headers.get('access-control-max-age'), '600')
  })

  it('include no unknown version, no other file, and no path outside the folder', async () => {
    for (const path of [
      ...['/static/1.2.3/array.js', '/static/2/array.js', '/static/nothing.js', '/static/array.d.ts', '/static/src'],
      ...['/static/integrity.json', '/static/package.json', '/static/__proto__', '/static/constructor'],
      ...['/static/..%2fpackage.json', '/static/%2e%2e%2fpackage.json', '/static/1/..%2f..%2fpackage.json'],
      ...['/static/array.js%00', '/static/.js', `/static/${version}/`, '/static/'],
    ]) {
      const answer = await ask(path)
      assert.equal(answer.status, 404, path)
      assert.equal((JSON.parse(answer.text) as { code: string }).code, 'not_found')
      assertOpenToPages(answer)
    }
  })

  it('include a toolbar script that opens no toolbar and causes no error when a page requests it', async () => {
    const { text } = await ask(`/static/toolbar.js?v=${version}&t=1700000000000`)
    const window: { ph_load_toolbar?: (params: object) => unknown } = {}
    runInNewContext(text, { window })
    assert.equal(window.ph_load_toolbar?.({}), undefined)
  })
})

/** Unlike `fetch`, this does not unpack the answer. */
async function rawBody(path: string, accepted: string): Promise<Buffer> {
  const bytes: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    const asked = request(front.url + path, { headers: { 'accept-encoding': accepted } }, answer => {
      answer.on('data', (chunk: Buffer) => void bytes.push(chunk))
      answer.on('end', resolve)
      answer.on('error', reject)
    })
    asked.on('error', reject).end()
  })
  return Buffer.concat(bytes)
}
