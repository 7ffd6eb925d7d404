// `/` for a browser and for other clients.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { aPassword, callFromPage, callsTo, readToken } from '../support/people.ts'
import { startedForTests } from '../support/started-for-tests.ts'

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

describe('/', () => {
  const front = startedForTests(() => startFront({ PENNON_ADMIN_PORT: '0' }))

  const ask = async (url: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/`, { headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  it('leads browsers to the screens, or describes what a port without them serves', async () => {
    const wire = await ask(front.url, { accept: browser })
    assert.equal(wire.headers.get('content-type'), 'text/html; charset=utf-8')
    assert.match(wire.text, /Point an SDK here/)
    assert.ok(wire.text.includes(`host: "${front.url}"`))
    assert.ok(!wire.text.includes('api/schema'), 'the private API is not on this port')
    for (const key of [testProjectKey, testPersonalKey]) assert.ok(!wire.text.includes(key), 'a key stands in the page')
    const admin = await fetch(`${front.adminUrl}/`, { headers: { accept: browser }, redirect: 'manual' })
    assert.deepEqual([admin.status, admin.headers.get('location')], [302, '/ui/'])
    assert.equal(admin.headers.get('vary'), 'accept')
    assert.equal((await fetch(`${front.url}/ui/`)).status, 404, 'the screens are on the port of the private API')
  })

  it('is the plain text that load balancers expect, for all other clients', async () => {
    for (const accept of ['*/*', 'application/json', 'text/plain, */*', 'text/html;q=0, */*', 'text/htmlx'])
      for (const url of [front.url, front.adminUrl!]) {
        const { text, headers } = await ask(url, { accept })
        assert.deepEqual([text, headers.get('content-type')], ['capture', 'text/plain; charset=utf-8'], accept)
        assert.equal(headers.get('vary'), 'accept')
      }
  })

  it('has a content security policy against scripts, external resources and framing', async () => {
    const { text, headers } = await ask(front.url, { accept: browser })
    const policy = headers.get('content-security-policy')!
    assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/)
    const style = /<style>(.*?)<\/style>/s.exec(text)![1]!
    assert.ok(policy.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`))
    assert.doesNotMatch(text, /<script|<[^>]*(?:src|href)="(?:https?:)?\/\/|<[^>]*\son\w+=/)
    assert.equal(headers.get('cache-control'), 'no-store')
  })

  it('shows the host of the request, unless that host is unsafe in a page', async () => {
    // fetch sets Host itself.
    const { request } = await import('node:http')
    const asked = (headers: Record<string, string>) =>
      new Promise<string>((resolve, reject) => {
        const sent = request(front.url, { headers: { accept: browser, ...headers } }, response => {
          let text = ''
          response.setEncoding('utf8').on('data', part => {
            text += part
          })
          response.on('end', () => resolve(/host: "(.*?)"/.exec(text)![1]!))
        })
        sent.on('error', reject).end()
      })
    assert.equal(await asked({ host: 'flags.example', 'x-forwarded-proto': 'https' }), 'https://flags.example')
    assert.equal(await asked({ host: '[::1]:8000' }), 'http://[::1]:8000')
    const behind = { host: 'shop.example', 'x-forwarded-proto': 'https', 'x-forwarded-prefix': '/ingest' }
    assert.equal(await asked(behind), 'https://shop.example/ingest')
    assert.equal(await asked({ ...behind, 'x-forwarded-prefix': '/"><b>' }), 'https://shop.example')
    assert.equal(await asked({ host: `a"><b>x` }), 'https://pennon.example')
  })
})

describe('a port of its own for the private API', () => {
  it('is where links to the screens lead, while SDKs are given the public URL', async t => {
    const front = await startFront({ PENNON_ADMIN_PORT: '0', PENNON_PUBLIC_URL: 'https://events.example' })
    t.after(() => front.close())
    const api = callsTo(front.adminUrl!)
    const invited = await api.call('POST', '/api/invitations/', { body: { role: 'viewer' } })
    assert.ok(invited.body.link.startsWith(`${front.adminUrl}/ui/welcome#`), invited.text)
    const body = { token: readToken(invited.body.link), email: 'ada@example.com', password: aPassword }
    const signedIn = await callFromPage(api, 'POST', '/api/session/link/', { body })
    assert.equal(signedIn.body.sdk_url, 'https://events.example')
    assert.doesNotMatch(signedIn.headers.get('set-cookie')!, /Secure/, 'this port is not served over https')
  })
})
