import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import {
  aPassword,
  aSignedInUser,
  callFromPage,
  inviteToken,
  pageHeaders,
  readCookie,
  signIn,
  toPerson,
} from '../support/people.ts'
import { aChange } from '../support/values.ts'

const hourMs = 3_600_000

describe('a session', () => {
  it('is not looked at beside a key, and a key has none', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const reader = await api.addKey(['feature_flag:read'])
    const headers = { cookie: ada.cookie, ...pageHeaders }
    assert.equal((await api.call('GET', '/api/projects/', { key: reader, headers })).status, 403)
    assert.equal((await api.call('GET', '/api/projects/', { key: 'phx_unknown', headers })).status, 401)
    assert.equal((await api.call('GET', '/api/projects/', { key: null, headers })).status, 200)
    const none = await api.call('GET', '/api/session/')
    assert.deepEqual([none.status, none.body.code], [403, 'permission_denied'])
    assert.equal((await callFromPage(api, 'GET', '/api/session/')).body.code, 'not_authenticated')
  })

  it('works only for requests of a page of this instance', async t => {
    const api = await startManagement(t)
    const { cookie } = await aSignedInUser(api, 'admin')
    const ask = async (method: string, headers: object) => {
      const options = {
        key: null,
        headers: { cookie, ...headers },
        ...(method === 'POST' && { body: { name: 'New' } }),
      }
      const { status, body } = await api.call(method, '/api/projects/', options)
      return status === 403 ? body.code : status
    }
    const page = { 'x-pennon-ui': '1' }
    for (const site of ['cross-site', 'same-site', 'none', 'same-origin, cross-site', '']) {
      assert.equal(await ask('GET', { 'sec-fetch-site': site }), 'cross_site_request', site)
      assert.equal(await ask('POST', { ...page, 'sec-fetch-site': site }), 'cross_site_request', site)
    }
    // As an image, a script or a form of another site, in browsers without Sec-Fetch-Site.
    assert.equal(await ask('GET', {}), 'cross_site_request')
    assert.equal(await ask('POST', { origin: 'https://evil.example' }), 'cross_site_request')
    assert.equal(await ask('POST', { origin: api.url }), 'cross_site_request', 'a write needs the header')
    assert.equal(await ask('POST', { 'sec-fetch-site': 'same-origin' }), 'cross_site_request')
    assert.equal(await ask('GET', { ...page, origin: 'https://evil.example' }), 'cross_site_request')
    assert.equal(await ask('GET', { ...page, origin: 'not a URL' }), 'cross_site_request')
    assert.equal(await ask('GET', { 'sec-fetch-site': 'same-origin' }), 200)
    assert.equal(await ask('GET', page), 200, 'plain http: browsers send neither header with a read')
    assert.equal(await ask('POST', { ...page, origin: api.url }), 201)
    assert.equal(await ask('POST', { ...page, 'sec-fetch-site': 'same-origin' }), 201)
    const preflight = await fetch(`${api.url}/api/projects/`, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-headers': 'x-pennon-ui' },
    })
    assert.equal(preflight.headers.get('access-control-allow-origin'), null)
  })

  it('is found among several cookies of its name, unless two of them are of sessions', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const eve = await aSignedInUser(api, 'viewer')
    const name = ada.cookie.slice(0, ada.cookie.indexOf('='))
    const ask = async (method: string, ...cookies: string[]) => {
      const reply = await callFromPage(api, method, '/api/session/', { headers: { cookie: cookies.join('; ') } })
      return [reply.status, reply.body?.user?.id ?? reply.body?.code, reply.headers.has('set-cookie')]
    }
    const unknown = `${name}=${'x'.repeat(43)}`
    assert.deepEqual(await ask('GET', `${name}=bad`, unknown, ada.cookie, 'a=b', ada.cookie), [200, ada.id, false])
    for (const method of ['GET', 'DELETE'])
      assert.deepEqual(await ask(method, eve.cookie, ada.cookie), [403, 'several_sessions', false])
    const many = [...'abcdef'].map(letter => `${name}=${letter.repeat(43)}`)
    assert.deepEqual(await ask('GET', ada.cookie, ...many), [403, 'several_sessions', false])
    assert.deepEqual(await ask('GET', unknown), [401, 'session_ended', true])
    const https = { ...pageHeaders, 'x-forwarded-proto': 'https' }
    const secure = await callFromPage(api, 'GET', '/api/session/', { headers: { ...https, cookie: ada.cookie } })
    assert.equal(secure.body.code, 'not_authenticated', 'over https the name has a prefix')
    const headers = { ...https, cookie: `__Secure-${ada.cookie}` }
    assert.equal((await callFromPage(api, 'GET', '/api/session/', { headers })).status, 200)
  })

  it('takes the place of the one that the browser had, and leaves no cookie when it has ended', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const eve = await aSignedInUser(api, 'viewer')
    const renewed = toPerson(api, await signIn(api, ada.email, aPassword, { cookie: ada.cookie }))
    const ended = await ada.call('GET', '/api/session/')
    assert.equal(ended.body.code, 'session_ended')
    assert.match(ended.headers.get('set-cookie')!, /^pennon_session_\w{8}=; Max-Age=0;/)
    const other = toPerson(api, await signIn(api, eve.email, aPassword, { cookie: renewed.cookie }))
    assert.equal((await renewed.call('GET', '/api/session/')).status, 401)
    for (let n = 0; n < 2; n++) {
      const out = await other.call('DELETE', '/api/session/')
      assert.equal(out.status, 204)
      assert.match(out.headers.get('set-cookie')!, /=; Max-Age=0;/)
    }
    assert.equal((await other.call('GET', '/api/session/')).status, 401)
    assert.equal((await eve.call('GET', '/api/session/')).status, 200, 'another browser')
    assert.equal((await api.call('DELETE', '/api/session/', { headers: pageHeaders })).status, 403, 'a key has none')
  })

  it('ends when the clock is set back by more than an hour', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    api.clock.advance(-hourMs)
    assert.equal((await ada.call('GET', '/api/users/@me/sessions/')).body.count, 1)
    api.clock.advance(-1)
    assert.equal((await ada.call('GET', '/api/session/')).body.code, 'session_ended')
  })

  it('is refused when all sessions were ended while the password was checked', async t => {
    const before = { findPasswordHash: () => api.management.endSessions(ada.id, { except: null }, aChange()) }
    const api = await startManagement(t, { before })
    const ada = await aSignedInUser(api, 'admin')
    const late = await signIn(api, ada.email)
    assert.deepEqual([late.status, late.body.code], [401, 'wrong_credentials'])
    assert.deepEqual(await api.management.listSessions(ada.id, api.clock.nowMs()), [])
  })

  it('and every other answer of the private API stays out of caches', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const none = { key: null }
    for (const reply of [
      await ada.call('GET', '/api/session/'),
      await ada.call('GET', '/api/projects/1/feature_flags/'),
      await api.call('GET', '/api/projects/1/feature_flags/999/'),
      await api.call('GET', '/api/projects/', none),
      await callFromPage(api, 'POST', '/api/session/', { body: { email: 'x'.repeat(20_000) } }),
    ])
      assert.equal(reply.headers.get('cache-control'), 'private, no-store', reply.text)
  })

  it('ends after 7 days without a request, and 30 days after the sign-in', async t => {
    const api = await startManagement(t)
    const dayMs = 24 * hourMs
    const idle = await aSignedInUser(api, 'admin')
    const busy = await aSignedInUser(api, 'editor')
    for (let day = 0; day < 30; day += 6) {
      assert.equal((await busy.call('GET', '/api/session/')).status, 200, `day ${day}`)
      await waitForUses(api, busy.id)
      api.clock.advance(6 * dayMs)
      if (day === 6) assert.equal((await idle.call('GET', '/api/session/')).body.code, 'session_ended')
    }
    assert.equal((await busy.call('GET', '/api/session/')).body.code, 'session_ended')
    assert.equal((await signIn(api, busy.email)).status, 200)
  })

  it('is listed and ended by its user and by an admin, and nobody else', async t => {
    const api = await startManagement(t)
    const admin = await aSignedInUser(api, 'admin')
    const ada = await aSignedInUser(api, 'editor')
    const others = [await signIn(api, ada.email), await signIn(api, ada.email)].map(reply => toPerson(api, reply))
    const listed = await ada.call('GET', '/api/users/@me/sessions/')
    assert.equal(listed.body.count, 3)
    const ids = fieldOf(listed.body.results, 'id')
    const isCurrent = fieldOf(listed.body.results, 'is_current')
    assert.equal(isCurrent.filter(Boolean).length, 1)
    const page = await ada.call('GET', '/api/users/@me/sessions/?limit=2&offset=2')
    assert.deepEqual([page.body.results.length, page.body.next], [1, null])
    const another = ids.find((_, index) => !isCurrent[index])
    assert.equal((await admin.call('DELETE', `/api/users/@me/sessions/${another}/`)).status, 404)
    assert.equal((await ada.call('GET', `/api/users/${admin.id}/sessions/`)).status, 403)
    assert.equal((await ada.call('DELETE', `/api/users/@me/sessions/${another}/`)).status, 204)
    const states = () => Promise.all(others.map(async one => (await one.call('GET', '/api/session/')).status))
    assert.deepEqual((await states()).sort(), [200, 401])
    assert.equal((await ada.call('DELETE', '/api/users/@me/sessions/')).status, 204)
    assert.deepEqual(await states(), [401, 401])
    const [own] = (await admin.call('GET', `/api/users/${ada.id}/sessions/`)).body.results
    assert.equal(own.is_current, false)
    assert.equal((await admin.call('DELETE', `/api/users/${ada.id}/sessions/${own.id}/`)).status, 204)
    assert.equal((await ada.call('GET', '/api/session/')).status, 401)
    await signIn(api, ada.email)
    assert.equal((await admin.call('DELETE', `/api/users/${ada.id}/sessions/`)).status, 204)
    assert.equal((await admin.call('GET', `/api/users/${ada.id}/sessions/`)).body.count, 0)
  })

  it('changes what is its user’s own at most ten times a minute, and nothing when nothing changes', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'viewer')
    const rename = (name: string) => ada.call('PATCH', '/api/session/user/', { body: { name, email: ada.email } })
    for (let n = 0; n < 12; n++) assert.equal((await rename('viewer')).status, 200)
    for (let n = 0; n < 10; n++) assert.equal((await rename(`Ada ${n}`)).status, 200)
    const many = await rename('Ada')
    assert.deepEqual([many.status, many.headers.get('retry-after')], [429, '60'])
    const { results } = await api.get('/api/activity_log/?scopes=User&limit=100')
    assert.equal(fieldOf(results, 'activity').filter(activity => activity === 'updated').length, 10)
    assert.equal((await rename('Ada 9')).status, 200)
  })

  it('does not let its user find out in numbers which addresses have an account, with or without a password', async t => {
    const api = await startManagement(t)
    await aSignedInUser(api, 'admin')
    const body = { token: await inviteToken(api, { role: 'viewer', email: 'eve@x.example' }) }
    await inviteToken(api, { role: 'viewer', email: 'invited@x.example' })
    const eve = toPerson(api, await callFromPage(api, 'POST', '/api/session/link/', { body }))
    const change = async (email: string) => {
      const reply = await eve.call('PATCH', '/api/session/user/', { body: { email } })
      return reply.body.code ?? reply.status
    }
    assert.equal(await change('admin@x.example'), 'email_taken')
    assert.equal(await change('invited@x.example'), 'email_taken', 'nobody keeps out who was invited')
    for (let n = 0; n < 8; n++) assert.equal(await change(`eve${n}@x.example`), 200)
    assert.equal(await change('admin@x.example'), 'too_many_attempts')
    api.clock.advance(60_000)
    const token = await inviteToken(api, { role: 'viewer' })
    const spend = async () =>
      (await callFromPage(api, 'POST', '/api/session/link/', { body: { token, email: 'admin@x.example' } })).body.code
    for (let n = 0; n < 20; n++) assert.equal(await spend(), 'email_taken')
    assert.equal(await spend(), 'too_many_attempts')
  })

  it('changes its user’s name freely, and the password only with the present one', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'viewer')
    const other = toPerson(api, await signIn(api, ada.email))
    const change = (body: object) => ada.call('PATCH', '/api/session/user/', { body })
    assert.equal((await change({ name: ' Ada ' })).body.name, 'Ada')
    assert.equal((await change({ password: 'x' })).body.attr, 'password')
    assert.equal((await change({ ...(await change({})).body, role: 'admin' })).body.role, 'viewer')
    const missing = await change({ password: 'another password' })
    assert.deepEqual([missing.status, missing.body.attr], [400, 'current_password'])
    const wrong = await change({ password: 'another password', current_password: 'wrong horse battery' })
    assert.deepEqual([wrong.status, wrong.body.code], [403, 'wrong_password'])
    assert.equal((await change({ email: 'a@x.example' })).body.attr, 'current_password')
    const changed = await change({ password: 'another password', current_password: aPassword })
    assert.equal(changed.status, 200, changed.text)
    for (const ended of [ada, other]) assert.equal((await ended.call('GET', '/api/session/')).status, 401)
    const headers = { cookie: readCookie(changed) }
    assert.equal((await callFromPage(api, 'GET', '/api/session/', { headers })).status, 200, 'the new session')
    assert.equal((await signIn(api, ada.email, 'another password')).status, 200)
  })
})

/** Waits until the state knows that the user was seen now. */
async function waitForUses(api: Awaited<ReturnType<typeof startManagement>>, userId: string): Promise<void> {
  const seenAtMs = api.clock.nowMs()
  for (;;) {
    if ((await api.management.findUser(userId))?.lastSeenAtMs === seenAtMs) return
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}
