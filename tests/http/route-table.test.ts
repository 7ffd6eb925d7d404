import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { METHODS } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { toDocumentedPath } from '#http/management/kit/openapi.ts'
import { collectKnownPaths } from '#http/shared/known-paths.ts'
import type { Route } from '#http/shared/route.ts'
import { fieldOf } from '../support/fields-of.ts'
import { type RunningFront, startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'

// Walks the route table of the public port as composed in production, with real stores and no worker.

/** All routes that answer without a key. A new line here is a decision. */
const openPaths = [
  ...[
    '/',
    '/_liveness',
    '/_readiness',
    '/api/schema',
    '/api/session',
    '/api/session/link',
    '/api/session/link/check',
    '/decide',
    '/flags',
    '/openapi.json',
  ],
  ...['/static/:file', '/static/:version/:file', '/ui', '/ui/*', '/ui/assets/*'],
]
/** Values for path parameters; all others are ids. */
const parameters: Readonly<Record<string, string>> = { token: testProjectKey, file: 'array.js' }

let front: RunningFront
let url: string

before(async () => {
  front = await startFront()
  url = front.url
})

after(() => front.close())

function pathOf(route: Pick<Route, 'path'>): string {
  return route.path.replaceAll(/:(\w+)/g, (_match, name: string) => parameters[name] ?? '1')
}

interface OpenApi {
  readonly servers: readonly { url: string }[]
  readonly tags: readonly { name: string; description: string }[]
  readonly paths: Record<
    string,
    Record<
      string,
      {
        operationId: string
        tags: string[]
        responses: object
        security: object[]
        requestBody?: { content: Record<string, { schema: { $ref: string } }> }
      }
    >
  >
  readonly components: { schemas: object; securitySchemes: object }
}

async function ask(method: string, path: string, init: RequestInit = {}) {
  const response = await fetch(url + path, { method, redirect: 'manual', ...init })
  const contentType = response.headers.get('content-type') ?? ''
  return { status: response.status, text: await response.text(), contentType }
}

/** The whole answer to raw bytes, which may be such as no HTTP client sends. */
async function sendRaw(request: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(request)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}

describe('the route table', () => {
  it('has no path that docs/wire lists as not served yet', () => {
    const served = new Set(front.routes.map(route => route.path.replace(/\/$/, '')))
    const pages = globSync('docs/wire/*.md').map(page => readFileSync(page, 'utf8'))
    const lines = pages.flatMap(page => [...page.matchAll(/^Not served yet\b.*$/gm)].map(([line]) => line))
    const paths = lines.flatMap(line => [...line.matchAll(/`(\/[^`]*)`/g)].map(([, path]) => path!.replace(/\/$/, '')))
    assert.ok(lines.length >= 3 && paths.includes('/i/v0/ai'), 'this test’s way of looking finds them')
    assert.deepEqual(
      paths.filter(path => served.has(path)),
      [],
    )
    assert.ok(served.has('/i/v0/ai/batch'))
  })

  it('rejects the private API without a key, with a project key and with an unknown key', async () => {
    const guarded = front.routes.filter(route => route.access === 'personal_key' || route.access === 'server_key')
    assert.ok(guarded.length > 20)
    const unknownKeys = [
      undefined,
      `Bearer ${testProjectKey}`,
      'Bearer phx_0000000000000000000000000000000000000000000',
      `Basic ${testPersonalKey}`,
    ]
    for (const route of guarded) {
      for (const authorization of unknownKeys) {
        const headers = authorization === undefined ? {} : { authorization }
        const answer = await ask(route.method, pathOf(route), { headers })
        assert.equal(answer.status, 401, `${route.method} ${route.path} with ${authorization}`)
        assert.match(answer.contentType, /application\/json/)
      }
      if (route.acceptsKeyInQuery === true) continue
      const inQuery = await ask(route.method, `${pathOf(route)}?personal_api_key=${testPersonalKey}`)
      assert.equal(inQuery.status, 401, `${route.method} ${route.path} with a key in the query`)
    }
  })

  it('accepts a key in the URL only for definitions', () => {
    const taking = fieldOf(
      front.routes.filter(route => route.acceptsKeyInQuery === true),
      'path',
    )
    assert.deepEqual(taking, ['/flags/definitions', '/api/feature_flag/local_evaluation'])
  })

  it('has no public route other than the known ones', () => {
    const open = front.routes.filter(route => route.access === 'open' && route.method !== 'OPTIONS')
    assert.deepEqual([...new Set(open.map(route => route.path))].sort(), openPaths)
  })

  it('is fully described by the OpenAPI document, including access to metrics', async () => {
    const { paths } = JSON.parse((await ask('GET', '/api/schema/')).text) as {
      paths: Record<string, Record<string, { summary: string; security?: object[] }>>
    }
    const ofTheDocument = new Set(['/api/schema', '/openapi.json'])
    for (const { method, path, group } of front.routes)
      if (!ofTheDocument.has(path) && group !== 'ui')
        assert.ok(paths[toDocumentedPath(path)]?.[method.toLowerCase()], `${method} ${path}`)
    const metrics = paths['/metrics']?.get
    assert.equal(metrics?.summary, 'From this machine without authentication, otherwise with a personal API key.')
    assert.deepEqual(metrics?.security, [{}, { personalApiKey: [] }])
  })

  it('is described with request bodies, responses, errors and keys, under names usable by a generated client', async () => {
    const document = JSON.parse((await ask('GET', '/api/schema/')).text) as OpenApi
    const operations = new Map<string, OpenApi['paths'][string][string]>()
    for (const { method, path, access, group } of front.routes) {
      const operation = document.paths[toDocumentedPath(path)]?.[method.toLowerCase()]
      if (operation === undefined) continue
      const where = `${method} ${path}`
      assert.match(operation.operationId, /^[a-z]+(_[a-z0-9]+)*$/, where)
      assert.doesNotMatch(operation.operationId, /_\d$/, where)
      assert.ok(!operations.has(operation.operationId), `${operation.operationId} stands twice`)
      operations.set(operation.operationId, operation)
      const statuses = Object.keys(operation.responses)
      assert.ok(
        statuses.some(status => status.startsWith('4')),
        `${where} has no error`,
      )
      assert.ok(Array.isArray(operation.security), where)
      const takesBody = method === 'POST' && access === 'project_key'
      if (takesBody) {
        assert.match(operation.requestBody!.content['application/json']!.schema.$ref, /schemas\/\w+$/, where)
        if (group !== 'changes') for (const status of ['400', '401', '413']) assert.ok(statuses.includes(status), where)
      }
      const tag = document.tags.find(({ name }) => name === operation.tags[0])
      assert.ok(tag !== undefined && tag.description !== tag.name, `${where}: ${operation.tags[0]}`)
    }
    assert.deepEqual(fieldOf(document.servers, 'url'), ['/'])
    const named = new Set(Object.keys(document.components.schemas))
    const used = new Set(
      [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name!),
    )
    assert.deepEqual([...used].sort(), [...named].sort())
    const schemes = new Set([...operations.values()].flatMap(({ security }) => security.flatMap(Object.keys)))
    assert.deepEqual([...schemes].sort(), Object.keys(document.components.securitySchemes).sort())
  })

  it('never redirects: every path is served with and without the trailing slash, whatever the body', async () => {
    const bodies = ['', '{', '{}', JSON.stringify({ api_key: testProjectKey, event: 'e', distinct_id: 'd' })]
    // The screens are a page under every address, and files that are there once they are built.
    for (const route of front.routes.filter(({ group }) => group !== 'ui')) {
      for (const path of [pathOf(route), pathOf(route).replace(/\/?$/, '/')]) {
        if (/\.js(?:on)?\/$/.test(path) && route.path.includes('.')) continue // a file name has one spelling
        for (const body of route.method === 'GET' || route.method === 'HEAD' ? [undefined] : bodies) {
          const answer = await ask(route.method, path, {
            ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
          })
          assert.ok(answer.status < 300 || answer.status >= 400, `${route.method} ${path}: ${answer.status}`)
          assert.notEqual(answer.status, 404, `${route.method} ${path} is served`)
          assert.ok(answer.status !== 500, `${route.method} ${path}: ${answer.text}`)
        }
      }
    }
  })

  it('answers unknown paths and methods as JSON, even for malformed paths', async () => {
    for (const path of [
      '/nowhere',
      '/decide/extra',
      '//decide',
      '/capture/../decide',
      '/%2e%2e/etc/passwd',
      '/batch%2f',
      '/__proto__',
      '/DECIDE',
    ]) {
      const answer = await ask('POST', path, { body: '{}' })
      assert.ok([400, 401, 404].includes(answer.status), `${path}: ${answer.status}`)
      assert.equal(typeof JSON.parse(answer.text), 'object')
    }
    const fromPage = await fetch(`${url}/nowhere`, { headers: { origin: 'https://shop.example' } })
    assert.equal(fromPage.headers.get('access-control-allow-origin'), 'https://shop.example')
    const wrongMethod = await ask('DELETE', '/capture/')
    assert.equal(wrongMethod.status, 405)
    assert.equal((JSON.parse(wrongMethod.text) as { code: string }).code, 'method_not_allowed')
  })

  it('answers malformed HTTP as JSON too', async () => {
    const cases = [
      ['GARBAGE\r\n\r\n', 400, 'invalid_request'],
      [`GET /e/?data=${'a'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'invalid_request'],
    ] as const
    for (const [request, status, code] of cases) {
      const answer = await sendRaw(request)
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), request.slice(0, 40))
      const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as { code: string; detail: string }
      assert.equal(body.code, code, answer)
    }
  })

  it('answers HEAD where it answers GET, except where a GET sends events', async () => {
    const withKey = { headers: { authorization: `Bearer ${testPersonalKey}` } }
    assert.deepEqual(await ask('HEAD', '/_readiness'), { status: 200, text: '', contentType: 'application/json' })
    assert.equal((await ask('HEAD', '/api/projects/@current/persons/', withKey)).status, 200)
    assert.equal((await ask('HEAD', '/api/projects/@current/persons/')).status, 401)
    assert.equal((await ask('HEAD', '/static/array.js')).status, 200)
    assert.equal((await ask('HEAD', `/array/${testProjectKey}/config`)).status, 200)
    assert.equal((await ask('HEAD', '/capture/?data=e30=')).status, 405)
  })

  it('reveals no flag in the answer to a GET', async () => {
    const created = await ask('POST', '/api/projects/@current/feature_flags/', {
      headers: { authorization: `Bearer ${testPersonalKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ key: 'hidden-from-get', filters: { groups: [{ rollout_percentage: 100 }] } }),
    })
    assert.equal(created.status, 201, created.text)
    const config = ['config', 'config.js', 'array.js'].map(name => `/array/${testProjectKey}/${name}`)
    for (const path of ['/decide', '/decide/?v=3', '/flags/?v=2', `/decide?token=${testProjectKey}`, ...config]) {
      const answer = await ask('GET', path)
      assert.equal(answer.status, 200)
      assert.ok(!answer.text.includes('hidden-from-get'))
    }
  })
})

describe('a path or method that is not served', () => {
  it('is answered with a hint to the schema, or to the port that serves the path', async t => {
    assert.match((await ask('GET', '/nothing/')).text, /GET \/api\/schema\/ lists all endpoints/)
    const divided = await startFront({ PENNON_ADMIN_PORT: '0' })
    t.after(() => divided.close())
    for (const path of ['/nothing/', '/api/schema/', '/api/projects/']) {
      const response = await fetch(divided.url + path)
      const { detail } = (await response.json()) as { detail: string }
      assert.equal(response.status, 404)
      assert.match(detail, /this port serves SDKs only.*\/api\/schema\/ are on another port/)
    }
  })

  it('is answered with 405 and the methods that the path has', async () => {
    for (const known of collectKnownPaths(front.routes)) {
      const method = ['PUT', 'PATCH', 'DELETE', 'POST'].find(each => !known.methods.has(each))!
      // Also with slashes that are doubled, as an SDK whose host ends in one has them.
      const path = pathOf(known)
      for (const spelt of path === '/' ? [path] : [path, `/${path}`]) {
        const response = await fetch(url + spelt, { method })
        assert.equal(response.status, 405, `${method} ${spelt}: ${await response.text()}`)
        assert.equal(response.headers.get('allow'), [...known.methods].join(', '), `${method} ${spelt}`)
      }
    }
  })

  it('is rejected as JSON, with and without a body', async () => {
    // Node knows methods that no route has; CONNECT asks for a tunnel, whose connection Node closes by itself.
    const methods = METHODS.filter(
      method => !['GET', 'HEAD', 'POST', 'OPTIONS', 'PATCH', 'DELETE', 'CONNECT'].includes(method),
    )
    assert.ok(methods.includes('QUERY'))
    for (const method of methods)
      for (const body of ['', '{"a":1}'])
        for (const [path, status] of [
          ['/flags', 405],
          ['/batch/', 405],
          ['/api/projects/1/', 405],
          ['/no-such-path', 404],
        ] as const) {
          const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`
          const answer = await sendRaw(head + body)
          assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), `${method} ${path}: ${answer.slice(0, 60)}`)
          assert.equal(
            JSON.parse(answer.split('\r\n\r\n')[1]!).code,
            status === 405 ? 'method_not_allowed' : 'not_found',
          )
        }
  })
})
