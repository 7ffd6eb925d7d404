import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '#core/json.ts'
import type { DecideServer } from '../support/decide-server.ts'
import { startDecideServer } from '../support/decide-server.ts'

const requestId = '0197c5a0-0000-4000-8000-000000000001'
const on = { groups: [{ properties: [], rollout_percentage: 100 }] }
const planIsPro = { key: 'plan', type: 'person', operator: 'exact', value: 'pro' }

const fixedFlags: JsonObject[] = [
  { id: 1, key: 'plain', version: 3, filters: { ...on, payloads: { true: '"hello"' } } },
  {
    id: 2,
    key: 'arms',
    filters: {
      ...on,
      multivariate: {
        variants: [
          { key: 'control', rollout_percentage: 50 },
          { key: 'test', rollout_percentage: 50 },
        ],
      },
      payloads: { control: { copy: 'old', size: 1 }, test: '{"copy": "new"}' },
    },
  },
  { id: 3, key: 'pro-only', filters: { groups: [{ properties: [planIsPro] }] } },
  { id: 4, key: 'resting', active: false, filters: on },
  { id: 5, key: 'broken', filters: { groups: [{ properties: [{ key: 'id', type: 'cohort', value: 77 }] }] } },
  { id: 6, key: 'quote"d — ключ', filters: on },
]

describe('flag answers', () => {
  it('have exactly the v=3 body', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const body = { api_key: 'phc_test', distinct_id: 'user-1' }
    const answer = await server.post('/decide?v=3', body, { 'x-request-id': requestId.toUpperCase() })
    assert.equal(answer.status, 200)
    assert.equal(
      answer.text,
      '{"config":{"enable_collect_everything":true},"toolbarParams":{},"errorsWhileComputingFlags":true,' +
        '"isAuthenticated":false,"supportedCompression":["gzip","gzip-js","lz64"],' +
        '"featureFlags":{"plain":true,"arms":"test","pro-only":false,"quote\\"d — ключ":true},' +
        '"featureFlagPayloads":{"plain":"\\"hello\\"","arms":"{\\"copy\\": \\"new\\"}"},' +
        `"requestId":"${requestId}","evaluatedAt":1768478400000,"hasFeatureFlags":true,"editorParams":{},` +
        '"sessionRecording":false,"surveys":false,"heatmaps":false,"capturePerformance":false,' +
        '"autocaptureExceptions":false,"autocapture_opt_out":false,"captureDeadClicks":false,' +
        '"analytics":{"endpoint":"/i/v0/e/"},"elementsChainAsString":true,' +
        '"errorTracking":{"autocaptureExceptions":false,"suppressionRules":[]},"defaultIdentifiedOnly":true,"siteApps":[]}',
    )
  })

  it('have exactly the v=2 body', async t => {
    const server = await startDecideServer(t, { flags: [fixedFlags[0]!, fixedFlags[4]!] })
    const body = { token: 'phc_test', distinct_id: 'user-1' }
    const answer = await server.post('/flags/?v=2', body, { 'x-request-id': requestId })
    assert.equal(
      answer.text,
      '{"errorsWhileComputingFlags":true,"flags":{"plain":{"key":"plain","enabled":true,"variant":null,' +
        '"reason":{"code":"condition_match","condition_index":0,"description":"Matched condition set 1"},' +
        '"metadata":{"id":1,"version":3,"description":null,"payload":"\\"hello\\"","has_experiment":false}},' +
        '"broken":{"key":"broken","enabled":false,"variant":null,"failed":true,' +
        '"reason":{"code":"dependency_not_found_cohort","condition_index":null,"description":"Cohort dependency not found"},' +
        '"metadata":{"id":5,"version":1,"description":null,"payload":null,"has_experiment":false}}},' +
        `"requestId":"${requestId}","evaluatedAt":1768478400000}`,
    )
  })

  it('contain payloads as JSON text if they are not strings', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const answer = await server.post('/decide?v=3', { api_key: 'phc_test', distinct_id: 'user-4' })
    assert.equal((answer.json.featureFlagPayloads as JsonObject).arms, '{"copy":"old","size":1}')
  })

  it('are a fixed body without flags for GET, empty for HEAD, and CORS headers for OPTIONS', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const minimal = await server.call('/decide?token=phc_test', { headers: { 'x-request-id': requestId } })
    assert.equal(
      minimal.text,
      '{"config":{"enable_collect_everything":true},"toolbarParams":{},"errorsWhileComputingFlags":false,' +
        '"isAuthenticated":false,"supportedCompression":["gzip","gzip-js","lz64"],"featureFlags":{},' +
        `"featureFlagPayloads":{},"sessionRecording":false,"requestId":"${requestId}","evaluatedAt":1768478400000}`,
    )
    const head = await server.call('/flags/', { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal(head.headers.get('content-type'), 'application/json')
    const options = await server.call('/flags', {
      method: 'OPTIONS',
      headers: { origin: 'https://shop.example', 'access-control-request-headers': 'x-a' },
    })
    assert.equal(options.status, 200)
    assert.equal(options.headers.get('access-control-allow-origin'), 'https://shop.example')
    assert.equal(options.headers.get('access-control-allow-headers'), 'x-a')
    const put = await server.call('/flags', { method: 'PUT', body: '{}' })
    assert.equal(put.status, 405)
    assert.equal(put.headers.get('allow'), 'GET, POST, OPTIONS, HEAD')
    assert.equal(put.json.code, 'method_not_allowed')
  })

  it('have the form of /decide if a proxy marks a /flags request as rewritten from /decide', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const answer = await server.post(
      '/flags?v=1',
      { token: 'phc_test', distinct_id: 'user-1' },
      { 'x-original-endpoint': 'decide' },
    )
    assert.ok(Array.isArray(answer.json.featureFlags))
  })

  it('count only requests that evaluate flags', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    await server.post('/decide?v=3', { api_key: 'phc_test', distinct_id: 'a' })
    await server.post('/decide?v=3', { api_key: 'phc_test', disable_flags: true })
    await server.post('/decide?v=3', { api_key: 'phc_nobody', distinct_id: 'a' })
    await server.call('/decide?v=3', {})
    assert.deepEqual(server.counted, [1])
  })
})

describe('bad requests for flags', () => {
  async function details(server: DecideServer, path: string, init: RequestInit) {
    const answer = await server.call(path, { method: 'POST', ...init })
    return { status: answer.status, code: answer.json.code, detail: answer.json.detail, attr: answer.json.attr }
  }

  it('get an error code and never a 500', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const deep = `{"token":"phc_test","distinct_id":"a","person_properties":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`
    const deepId = `{"api_key":"phc_test","distinct_id":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`
    const cases: [string, string, number, string][] = [
      ['/decide?v=3', '{"api_key":', 400, 'invalid_json'],
      ['/decide?v=3', '[]', 400, 'invalid_json'],
      ['/decide?v=3', '"text"', 400, 'invalid_json'],
      ['/decide?v=3', 'null', 400, 'invalid_json'],
      ['/decide?v=3', '{"distinct_id":"a"}', 401, 'not_authenticated'],
      ['/decide?v=3', '{"api_key":"","distinct_id":"a"}', 401, 'not_authenticated'],
      ['/decide?v=3', '{"api_key":"phc_nobody"}', 401, 'authentication_failed'],
      ['/decide?v=3', '{"api_key":"phc_test"}', 400, 'missing_distinct_id'],
      ['/decide?v=3', '{"api_key":5,"distinct_id":"a"}', 400, 'invalid_json'],
      ['/decide?v=3', '{"api_key":"phc_test","distinct_id":"a","groups":"acme"}', 400, 'invalid_json'],
      ['/decide?v=3', '{"api_key":"phc_test","distinct_id":"a","groups":["acme"]}', 400, 'invalid_json'],
      ['/decide?v=3', '{"api_key":"phc_test","distinct_id":"a","person_properties":5}', 400, 'invalid_json'],
      ['/decide?v=3', '{"api_key":"phc_test","distinct_id":"a","group_properties":{"c":1}}', 400, 'invalid_json'],
      ['/decide?v=3', '{"api_key":"phc_test","distinct_id":"a","flag_keys":[1]}', 400, 'invalid_json'],
      ['/decide?v=3', '{"api_key":"phc_test","distinct_id":"a","disable_flags":"yes"}', 400, 'invalid_json'],
      ['/decide?v=3', deep, 400, 'invalid_json'],
      ['/decide?v=3', deepId, 400, 'invalid_json'],
      ['/flags?v=2', deepId, 400, 'invalid_json'],
      ['/flags?v=2&sent_at=soon', '{"token":"phc_test","distinct_id":"a"}', 400, 'invalid_query'],
      ['/flags?v=2&compression=deflate', '{"token":"phc_test","distinct_id":"a"}', 400, 'unsupported_compression'],
    ]
    for (const [path, body, status, code] of cases) {
      const answer = await details(server, path, { body, headers: { 'content-type': 'application/json' } })
      assert.deepEqual(
        { status: answer.status, code: answer.code, attr: answer.attr },
        { status, code, attr: null },
        body.slice(0, 90),
      )
    }
  })

  it('include those with an invalid content type, but not those with invalid parameters of a valid content type', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const body = '{"api_key":"phc_test","distinct_id":"a"}'
    const ask = (contentType: string) =>
      details(server, '/decide?v=3', { body, headers: { 'content-type': contentType } })
    for (const contentType of [';;;', ';', 'json', 'application', 'image/png', '; charset=utf-8', '']) {
      const answer = await ask(contentType)
      assert.deepEqual([answer.status, answer.code], [400, 'unsupported_content_type'], contentType)
      assert.ok((answer.detail as string).includes(`: unsupported content type: ${contentType}. `), contentType)
    }
    for (const contentType of ['application/json;;;', 'application/json ; charset', 'TEXT/plain;=']) {
      assert.equal((await ask(contentType)).status, 200, contentType)
    }
  })

  it('are limited in the size of the body as received and as decompressed', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const tooLarge = await details(server, '/decide?v=3', { body: Buffer.alloc(2 * 1024 * 1024 + 1, ' ') })
    assert.deepEqual([tooLarge.status, tooLarge.code], [413, 'payload_too_large'])
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))
    const exploded = await details(server, '/decide?v=3&compression=gzip', { body: bomb })
    assert.deepEqual([exploded.status, exploded.code], [413, 'payload_too_large'])
    assert.match(exploded.detail as string, /^Decompressed request body exceeded 4194304 bytes/)
  })

  it('do not include those whose body is sent in chunks and without a content type', async t => {
    const server = await startDecideServer(t, { flags: fixedFlags })
    const answer = await new Promise<string>((resolve, reject) => {
      const request = httpRequest(`${server.base}/decide?v=3`, { method: 'POST' }, response => {
        response.setEncoding('utf8')
        let text = ''
        response.on('data', chunk => {
          text += chunk
        })
        response.on('end', () => resolve(text))
      })
      request.on('error', reject)
      request.write('{"api_key":"phc_test",')
      request.end('"distinct_id":"user-1"}')
    })
    assert.equal((JSON.parse(answer).featureFlags as JsonObject).plain, true)
  })
})

describe('names of properties that every JavaScript object inherits', () => {
  const names = ['__proto__', 'constructor', 'hasOwnProperty', 'toString']

  it('are ordinary names for flags, properties, payloads and group types', async t => {
    const flags = names.flatMap((name, index): JsonObject[] => [
      {
        id: index + 1,
        key: name,
        filters: { groups: [{ properties: [{ key: name, type: 'person', operator: 'is_set' }] }] },
      },
      {
        id: index + 101,
        key: `group-${name}`,
        filters: {
          groups: [{ properties: [{ key: name, type: 'group', operator: 'is_set', group_type_index: index }] }],
        },
      },
    ])
    const groupTypes = Object.fromEntries(names.map((name, index) => [String(index), name]))
    const server = await startDecideServer(t, { flags, groupTypes })

    const bare = await server.post('/decide?v=3&config=false', { api_key: 'phc_test', distinct_id: 'a' })
    for (const name of names) {
      assert.ok(bare.text.includes(`"${name}":false`), bare.text)
      assert.ok(bare.text.includes(`"group-${name}":false`))
    }
    const map = (value: string) => `{${names.map(name => `"${name}":${value}`).join(',')}}`
    const body =
      `{"api_key":"phc_test","distinct_id":"a","person_properties":${map('1')},"groups":${map('"g"')},` +
      `"group_properties":${map(map('1'))},"$properties":null}`
    const sent = await server.call('/decide?v=3&config=false', { method: 'POST', body })
    for (const name of names) {
      assert.ok(sent.text.includes(`"${name}":true`), sent.text)
      assert.ok(sent.text.includes(`"group-${name}":true`))
    }
    assert.equal(({} as Record<string, unknown>).polluted, undefined)
    assert.ok(!Object.hasOwn(Object.prototype, 'a'))
  })
})
