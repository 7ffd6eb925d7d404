import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Fastify from 'fastify'
import { healthRoutes, type Readiness } from './health.ts'

async function ask(query: string, readiness: Partial<Readiness> = {}) {
  const server = Fastify()
  const deps = {
    readiness: () => ({ flags: 'ok', capture: 'ok', processing: 'ok', events: 'ok', ...readiness }),
    metricsText: () => Promise.resolve(''),
  }
  for (const { method, path, handler } of healthRoutes(deps)) server.route({ method, url: path, handler })
  const response = await server.inject(`/_readiness${query}`)
  return { status: response.statusCode, body: response.json() }
}

describe('/_readiness', () => {
  it('answers 200 while flags are served and each required part works', async () => {
    const full = { capture: 'log_or_disk_full' }
    assert.deepEqual(await ask('', full), {
      status: 200,
      body: { flags: 'ok', ...full, processing: 'ok', events: 'ok' },
    })
    for (const [query, readiness, status] of [
      ['?require=capture', {}, 200],
      ['?require=capture', full, 503],
      ['?require=flags', full, 200],
      ['?require=processing', full, 200],
      ['?require=processing&require=capture', full, 503],
      ['?require=', full, 200],
      ['', { events: 'rows_missing' }, 200],
      ['?require=events', { events: 'rows_missing' }, 503],
      ['', { flags: 'starting' }, 503],
      ['?require=capture', { flags: 'starting' }, 503],
    ] as const)
      assert.equal((await ask(query, readiness)).status, status, query)
  })

  it('counts the capture of an import-only instance as working', async () => {
    const importOnly = { capture: 'import_only' }
    assert.deepEqual(await ask('?require=capture', importOnly), {
      status: 200,
      body: { flags: 'ok', ...importOnly, processing: 'ok', events: 'ok' },
    })
    assert.equal((await ask('?require=capture', { ...importOnly, flags: 'starting' })).status, 503)
  })

  it('refuses an unknown part, and a misspelt parameter `require`', async () => {
    const unknown = await ask('?require=foo')
    assert.deepEqual([unknown.status, unknown.body.code, unknown.body.attr], [400, 'invalid_input', 'require'])
    assert.match(unknown.body.detail, /flags, capture, processing/)
    for (const query of ['?requires=capture', '?Require=capture', '?requrie=capture']) {
      const { status, body } = await ask(query)
      assert.deepEqual([status, body.attr], [400, query.slice(1, -8)], query)
      assert.match(body.detail, /Did you mean require\?/)
    }
  })

  it('ignores parameters that load balancers add', async () => {
    assert.equal((await ask('?_=1700000000&cb=x&t=1&probe=lb')).status, 200)
  })
})
