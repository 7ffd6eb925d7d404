import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { Route } from '#http/shared/route.ts'
import { sendJson } from '#http/shared/route.ts'
import { PortError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { fieldsOf } from '../support/fields-of.ts'
import { allScopesKey, startManagement } from '../support/management-api.ts'
import { aChange } from '../support/values.ts'

const filled = (path: string) => path.replaceAll(':projectId', '1').replaceAll(/:\w+/g, '1')

describe('authentication of the private API', () => {
  it('rejects a key without the scope of a route on every route, except the description of the key itself', async t => {
    const api = await startManagement(t)
    // Some route asks for each scope that there is, so two keys show it for all routes.
    for (const object of ['import_job', 'session_recording']) {
      const key = await api.addKey([`${object}:read`])
      for (const route of api.routes) {
        // DELETE @current ends the key itself.
        if (route.access === 'open' || route.scope.includes(object)) continue
        if (route.path === '/api/personal_api_keys/@current' && route.method === 'DELETE') continue
        const { status, body } = await api.call(route.method, filled(route.path), { key })
        const describesKey = route.path === '/api/personal_api_keys/@current'
        if (describesKey) assert.deepEqual([status, body.scopes], [200, [`${object}:read`]])
        else assert.deepEqual([status, body.code], [403, 'permission_denied'], `${route.method} ${route.path}`)
      }
    }
  })

  it('refuses unknown keys, other schemes, the project API key and a key in the URL', async t => {
    const api = await startManagement(t)
    const path = '/api/projects/1/feature_flags/'
    for (const key of ['phx_unknown', 'phc_first', '', `phx_${'x'.repeat(5_000)}`]) {
      assert.equal((await api.call('GET', path, { key })).status, 401, key.slice(0, 20))
    }
    const none = await api.call('GET', path, { key: null })
    assert.deepEqual([none.status, none.body.type, none.body.code], [401, 'authentication_error', 'not_authenticated'])
    assert.equal(none.headers.get('www-authenticate'), 'Bearer realm="api"')
    const bare = await api.call('GET', path, { key: null, headers: { authorization: 'phx_all-scopes' } })
    assert.equal(bare.status, 401)
    assert.match(bare.body.detail, /lacks the word Bearer/)
    const basic = await api.call('GET', path, { key: null, headers: { authorization: 'Basic phx_all-scopes' } })
    assert.equal(basic.status, 401)
    for (const query of ['?personal_api_key=phx_all-scopes', '?token=phx_all-scopes', '?a=1&a=phx_all-scopes']) {
      for (const key of [null, 'phx_all-scopes']) {
        const { status, body } = await api.call('GET', path + query, { key })
        assert.equal(status, 401, query)
        assert.match(body.detail, /header: Authorization: Bearer/)
      }
    }
  })

  it('accepts the authentication scheme in upper and lower case', async t => {
    const api = await startManagement(t)
    const headers = { authorization: 'bearer phx_all-scopes' }
    assert.equal((await api.call('GET', '/api/projects/', { key: null, headers })).status, 200)
  })

  it('lets read scopes only read, and write scopes read and write', async t => {
    const api = await startManagement(t)
    const reader = await api.addKey(['feature_flag:read'])
    const writer = await api.addKey(['feature_flag:write'])
    const path = '/api/projects/1/feature_flags/'
    await api.get(path, reader)
    const refused = await api.call('POST', path, { key: reader, body: { key: 'a' } })
    assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
    assert.match(refused.body.detail, /feature_flag:write/)
    await api.post(path, { key: 'a' }, writer)
    await api.get(path, writer)
    assert.equal((await api.call('GET', '/api/projects/1/persons/', { key: writer })).status, 403)
  })

  it('limits a key to its projects, and resolves @current to the first of them', async t => {
    const api = await startManagement(t)
    await api.post('/api/projects/', { name: 'Second' })
    await api.post('/api/projects/', { name: 'Third' })
    const key = await api.addKey(['*'], [3, 2])
    for (const path of ['/api/projects/1/', '/api/environments/1/feature_flags/', '/api/projects/01/events/']) {
      const { status, body } = await api.call('GET', path, { key })
      assert.deepEqual([status, body.code], [403, 'permission_denied'], path)
    }
    assert.equal((await api.get('/api/projects/@current/', key)).id, 2)
    assert.equal((await api.get('/api/projects/3/', key)).id, 3)
    const listed = await api.get('/api/projects/', key)
    assert.deepEqual([listed.count, listed.results.map((project: { id: number }) => project.id)], [2, [2, 3]])
    const me = await api.get('/api/users/@me/', key)
    assert.deepEqual([me.team.id, me.organization.projects.length], [2, 2])
    for (const [method, path, body] of [
      ['POST', '/api/projects/', { name: 'Fourth' }],
      ['POST', '/api/personal_api_keys/', { label: 'wider', scopes: ['*'] }],
      ['GET', '/api/personal_api_keys/', undefined],
    ] as const) {
      assert.equal((await api.call(method, path, { key, body })).status, 403, path)
    }
  })

  it('rejects a deleted key at once', async t => {
    const api = await startManagement(t)
    const body = await api.post('/api/personal_api_keys/', { label: 'script', scopes: ['*'] })
    await api.get('/api/projects/', body.value)
    assert.equal((await api.call('DELETE', `/api/personal_api_keys/${body.id}/`)).status, 204)
    assert.equal((await api.call('GET', '/api/projects/', { key: body.value })).status, 401)
  })

  it('accepts a key for at most ten seconds after another process has deleted it', async t => {
    const api = await startManagement(t)
    const key = await api.addKey(['*'])
    await api.get('/api/projects/', key)
    for (const { id, label } of (await api.management.listPersonalKeys({ limit: 100, offset: 0 })).results) {
      if (label === '*' && id !== (await api.get('/api/users/@me/')).distinct_id) {
        await api.management.deletePersonalKey(id, aChange())
      }
    }
    api.clock.advance(10_001)
    assert.equal((await api.call('GET', '/api/projects/', { key })).status, 401)
  })

  it('answers 503 with Retry-After while keys cannot be read', async t => {
    const api = await startWithoutKeys(t)
    const { status, body, headers } = await api.call('GET', '/api/projects/', { key: 'phx_other' })
    assert.deepEqual([status, body.type, body.code], [503, 'server_error', 'state_unavailable'])
    assert.equal(headers.get('retry-after'), '1')
  })

  it('logs one line a minute with the number of failed requests while keys cannot be read', async t => {
    const lines: { times: number; path: string }[] = []
    const logger = Object.assign(createSilentLogger(), {
      warn: (line: (typeof lines)[number]) => void lines.push(line),
    })
    const api = await startWithoutKeys(t, logger)
    for (let n = 0; n < 10; n++) {
      const path = n % 2 === 0 ? '/api/projects/' : '/api/users/@me/'
      assert.equal((await api.call('GET', path, { key: `phx_madeup${n}` })).status, 503)
    }
    api.clock.advance(60_000)
    await api.call('GET', '/api/projects/', { key: 'phx_madeup' })
    assert.deepEqual(fieldsOf(lines, 'times', 'path'), [
      [1, '/api/projects/'],
      [10, '/api/projects/'],
    ])
  })

  it('admits operators from this machine or with a key, but not through a proxy without one', async t => {
    const api = await startManagement(t, { otherRoutes: [metricsRoute] })
    assert.equal((await api.call('GET', '/metrics', { key: null })).status, 200)
    for (const name of ['x-forwarded-for', 'x-forwarded-prefix', 'forwarded', 'x-real-ip', 'via', 'cf-connecting-ip']) {
      const headers = { [name]: '127.0.0.1' }
      assert.equal((await api.call('GET', '/metrics', { key: null, headers })).status, 401, name)
      assert.equal((await api.call('GET', '/metrics', { headers })).status, 200, name)
    }
    assert.equal((await api.call('GET', '/metrics', { key: 'phx_unknown' })).status, 401)
  })

  it('does not treat a web page or an unconfigured proxy as a local operator', async t => {
    const api = await startManagement(t, { otherRoutes: [metricsRoute] })
    const { port } = new URL(api.url)
    const own = `Host: 127.0.0.1:${port}`
    const status = async (version: string, ...headers: string[]) =>
      (
        await sendRaw(
          Number(port),
          `GET /metrics HTTP/${version}\r\n${headers.join('\r\n')}\r\nConnection: close\r\n\r\n`,
        )
      ).slice(9, 12)
    for (const host of [own, 'Host: localhost', `Host: LOCALHOST:${port}`, `Host: [::1]:${port}`, 'Host: 127.1.2.3'])
      assert.equal(await status('1.1', host), '200', host)
    // A name that an attacker's DNS resolves to this machine, and names that only look local.
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '10.0.0.1',
    ])
      assert.equal(await status('1.1', `Host: ${host}`), '401', host)
    assert.equal(await status('1.1', own, 'Origin: http://localhost:3000'), '401')
    assert.equal(await status('1.1', own, 'Origin: null'), '401')
    // As nginx sends it when only proxy_pass is configured.
    assert.equal(await status('1.0', own), '401')
    assert.equal(await status('1.0', own, `Authorization: Bearer ${allScopesKey}`), '200')
  })

  it('requires a key from local callers too if configured', async t => {
    const api = await startManagement(t, { otherRoutes: [metricsRoute], operatorsNeedKey: true })
    const refused = await api.call('GET', '/metrics', { key: null })
    assert.equal(refused.status, 401)
    assert.match(refused.body.detail, /PENNON_METRICS_REQUIRE_KEY/)
    await api.get('/metrics')
  })
})

/** Keys cannot be read once it has started. */
async function startWithoutKeys(t: TestContext, logger = createSilentLogger()) {
  let isDown = false
  const api = await startManagement(t, {
    logger,
    before: {
      findPersonalKeyByHash: () => {
        if (isDown) throw new PortError('state', 'unavailable')
      },
    },
  })
  isDown = true
  return api
}

const metricsRoute: Route = {
  method: 'GET',
  path: '/metrics',
  access: 'operator',
  group: 'health',
  bodyLimitBytes: 1,
  handler: (_request, reply) => sendJson(reply, 200, '{}'),
}

/** The whole answer to raw bytes, which may be such as no HTTP client sends. */
async function sendRaw(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(request)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}
