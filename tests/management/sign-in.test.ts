import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { passwordLength } from '#core/users/user.ts'
import { waitingMax } from '#services/manage/passwords.ts'
import { eventually } from '../support/eventually.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import {
  aPassword,
  aSignedInUser,
  callFromPage,
  inviteToken,
  readCookie,
  readToken,
  signIn,
  toPerson,
} from '../support/people.ts'
import { aChange } from '../support/values.ts'

const hourMs = 3_600_000

describe('signing in', () => {
  it('works with a link and then with e-mail and password, and tells who that is', async t => {
    const api = await startManagement(t)
    const token = await inviteToken(api, { role: 'editor', email: ' Ada@X.example', name: 'Ada' })
    const checked = await callFromPage(api, 'POST', '/api/session/link/check/', { body: { token } })
    assert.deepEqual(checked.body, {
      ...{ purpose: 'invitation', email: 'ada@x.example', name: 'Ada', role: 'editor' },
      ...{ is_new_user: true, has_password: false, expires_at: '2026-05-08T12:00:00.000Z' },
    })
    const body = { token, name: 'Ada Lovelace', password: aPassword }
    const first = await callFromPage(api, 'POST', '/api/session/link/', { body })
    assert.equal(first.status, 200, first.text)
    const { user, session, role, scopes, projects, build } = first.body
    assert.deepEqual(
      [user.name, user.email, user.has_password, user.disabled, role, build],
      ['Ada Lovelace', 'ada@x.example', true, false, 'editor', '1.2.3'],
    )
    assert.ok(scopes.includes('feature_flag:write') && !scopes.includes('project:write'))
    assert.deepEqual(fieldOf(projects, 'name'), ['First'])
    assert.deepEqual([session.is_current, session.ends_at], [true, '2026-05-08T12:00:00.000Z'])

    const again = await signIn(api, 'ADA@x.example ')
    assert.equal(again.status, 200, again.text)
    assert.notEqual(readCookie(again), readCookie(first), 'every sign-in has a session of its own')
    const ada = toPerson(api, again)
    const own = await ada.call('GET', '/api/session/')
    assert.deepEqual([own.status, own.body.user.id], [200, user.id])
    const me = await ada.call('GET', '/api/users/@me/')
    assert.deepEqual(
      [me.status, me.body.uuid, me.body.first_name, me.body.email, me.body.team.name],
      [200, user.id, 'Ada Lovelace', 'ada@x.example', 'First'],
    )
    assert.equal((await ada.call('DELETE', '/api/session/')).status, 204)
    const ended = await ada.call('GET', '/api/session/')
    assert.deepEqual([ended.status, ended.body.code], [401, 'session_ended'])
    assert.equal((await toPerson(api, first).call('GET', '/api/session/')).status, 200, 'the other session goes on')
  })

  it('sets a cookie that only the private API of this instance sees', async t => {
    const cookieOf = async (options: object, headers = {}) => {
      const api = await startManagement(t, options)
      await aSignedInUser(api, 'admin')
      return (await signIn(api, 'admin@x.example', aPassword, headers)).headers.get('set-cookie')
    }
    const form = (secure: string) =>
      new RegExp(
        String.raw`^${secure && '__Secure-'}pennon_session_\w{8}=[\w-]{43}; Max-Age=2592000; Path=/api; HttpOnly; SameSite=Strict${secure}$`,
      )
    assert.match((await cookieOf({}))!, form(''))
    assert.match((await cookieOf({}, { 'x-forwarded-proto': 'https' }))!, form('; Secure'))
    assert.match((await cookieOf({ publicUrl: 'https://pennon.example' }))!, form('; Secure'))
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const out = await ada.call('DELETE', '/api/session/')
    assert.match(
      out.headers.get('set-cookie')!,
      /^pennon_session_\w{8}=; Max-Age=0; Path=\/api; HttpOnly; SameSite=Strict$/,
    )
  })

  it('does not tell an unknown address from a wrong password, a missing password or a disabled user', async t => {
    const api = await startManagement(t)
    await aSignedInUser(api, 'admin')
    const eve = await aSignedInUser(api, 'viewer')
    await api.patch(`/api/users/${eve.id}/`, { disabled: true })
    const token = await inviteToken(api, { role: 'viewer', email: 'later@x.example' })
    assert.equal((await callFromPage(api, 'POST', '/api/session/link/', { body: { token } })).status, 200)
    const answers = new Set<string>()
    for (const [email, password] of [
      ['nobody@x.example', aPassword],
      ['not an address', aPassword],
      ['admin@x.example', 'wrong horse battery'],
      ['admin@x.example', 'short'],
      ['viewer@x.example', aPassword],
      ['later@x.example', aPassword],
    ] as const) {
      const { status, text, headers } = await signIn(api, email, password)
      assert.equal(headers.get('set-cookie'), null)
      answers.add(`${status} ${text}`)
    }
    assert.equal(answers.size, 1, [...answers].join('\n'))
    assert.match([...answers][0]!, /^401 .*"code":"wrong_credentials"/)
  })

  it('replaces the hash of a password that was made with other parameters, and ends no session', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    // This is a hash of the password `password`; `passwords.test.ts` has it too.
    const passwordHash = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
    await api.management.updateUser(ada.id, { passwordHash, isSamePassword: true }, aChange())
    const again = await signIn(api, ada.email, 'password')
    assert.equal(again.status, 200, again.text)
    assert.match((await api.management.findPasswordHash(ada.id))!, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    assert.equal((await signIn(api, ada.email, 'password')).status, 200)
    for (const person of [ada, toPerson(api, again)])
      assert.equal((await person.call('GET', '/api/session/')).status, 200)
    const { results } = await api.get('/api/activity_log/?scopes=User')
    assert.ok(!fieldOf(results, 'activity').includes('password_changed'))
  })

  it('needs a page of this instance, so that no other site can sign somebody in', async t => {
    const api = await startManagement(t)
    await aSignedInUser(api, 'admin')
    const sent = { email: 'admin@x.example', password: aPassword }
    const form = new URLSearchParams(sent).toString()
    for (const [headers, body] of [
      [{ 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' }, form],
      [{ 'content-type': 'text/plain', 'sec-fetch-site': 'cross-site' }, JSON.stringify(sent)],
      [{ 'x-pennon-ui': '1', 'sec-fetch-site': 'cross-site' }, sent],
      [{ 'x-pennon-ui': '1', 'sec-fetch-site': 'same-site' }, sent],
      [{ 'x-pennon-ui': '1', origin: 'https://evil.example' }, sent],
      [{ 'x-pennon-ui': '1', origin: 'null' }, sent],
      [{}, sent],
    ] as const) {
      const reply = await api.call('POST', '/api/session/', { key: null, headers, body })
      assert.ok([400, 403].includes(reply.status), `${JSON.stringify(headers)}: ${reply.text}`)
      assert.equal(reply.headers.get('set-cookie'), null)
    }
    for (const origin of [api.url, undefined]) {
      const headers = { 'x-pennon-ui': '1', ...(origin !== undefined && { origin }) }
      assert.equal((await api.call('POST', '/api/session/', { key: null, headers, body: sent })).status, 200)
    }
  })

  it('refuses misspelt fields, wrong types and bodies that are too large', async t => {
    const api = await startManagement(t)
    const send = async (body: unknown, path = '/api/session/') => {
      const reply = await callFromPage(api, 'POST', path, { body })
      return [reply.status, reply.body.code, reply.body.attr]
    }
    assert.deepEqual(await send({ email: 'a@x.example', pasword: 'x' }), [400, 'invalid_input', 'pasword'])
    assert.deepEqual(await send({ email: 'a@x.example' }), [400, 'required', 'password'])
    assert.deepEqual(await send({ email: 5, password: 'x' }), [400, 'invalid', 'email'])
    assert.deepEqual(await send({ email: 'a'.repeat(20_000), password: 'x' }), [413, 'payload_too_large', null])
    const token = await inviteToken(api, { role: 'admin' })
    const link = '/api/session/link/'
    assert.deepEqual(await send({ token, password: 'too short' }, link), [400, 'invalid_input', 'password'])
    assert.deepEqual(await send({ token, password: 'x'.repeat(201) }, link), [400, 'invalid_input', 'password'])
    assert.deepEqual(await send({ token, email: 'ada' }, link), [400, 'invalid_input', 'email'])
    assert.deepEqual(await send({ token, name: '  ' }, link), [400, 'invalid_input', 'name'])
    assert.equal(
      (await send({ token, email: 'ada@x.example', password: 'å'.normalize('NFD').repeat(200) }, link))[0],
      200,
    )
    assert.equal((await send({ email: 'ada@x.example', password: 'å'.repeat(200) }))[0], 200)
  })
})

describe('a link', () => {
  it('works once, for as long as its purpose says, and no GET or check uses it up', async t => {
    const api = await startManagement(t)
    const token = await inviteToken(api, { role: 'admin', email: 'ada@x.example' })
    for (const path of ['/api/session/link/', `/api/session/link/?token=${token}`, '/api/session/link/check/'])
      assert.equal((await api.call('GET', path, { key: null })).status, 405, path)
    const post = (path: string, sent: object) => callFromPage(api, 'POST', path, { body: sent })
    for (let n = 0; n < 3; n++) assert.equal((await post('/api/session/link/check/', { token })).status, 200)
    api.clock.advance(7 * 24 * hourMs - 1)
    const both = await Promise.all([1, 2].map(() => post('/api/session/link/', { token })))
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 410])
    const used = await post('/api/session/link/', { token })
    assert.deepEqual([used.status, used.body.code], [410, 'link_used'])
    assert.equal((await post('/api/session/link/check/', { token })).body.code, 'link_used')

    const later = await inviteToken(api, { role: 'viewer', email: 'eve@x.example' })
    api.clock.advance(7 * 24 * hourMs)
    for (const path of ['/api/session/link/', '/api/session/link/check/']) {
      const expired = await post(path, { token: later })
      assert.deepEqual([expired.status, expired.body.code], [410, 'link_expired'])
    }
    const unknown = await post('/api/session/link/', { token: 'x'.repeat(43) })
    assert.deepEqual([unknown.status, unknown.body.code], [404, 'link_unknown'])
  })

  it('to reset a password works for an hour, needs a new password, and ends the other sessions', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const make = async () => readToken((await api.post(`/api/users/${ada.id}/reset_link/`)).link)
    const replaced = await make()
    const token = await make()
    const post = (sent: object) => callFromPage(api, 'POST', '/api/session/link/', { body: sent })
    assert.equal((await post({ token: replaced, password: 'another password' })).body.code, 'link_unknown')
    const missing = await post({ token })
    assert.deepEqual([missing.status, missing.body.attr], [400, 'password'])
    const spent = await post({ token, password: 'another password' })
    assert.equal(spent.status, 200, spent.text)
    assert.equal((await ada.call('GET', '/api/session/')).status, 401)
    assert.equal((await signIn(api, ada.email)).status, 401)
    assert.equal((await signIn(api, ada.email, 'another password')).status, 200)
    const late = await make()
    api.clock.advance(hourMs)
    assert.equal((await post({ token: late, password: 'yet another one' })).body.code, 'link_expired')
  })

  it('for an address that is taken, or for a user who is disabled, is refused', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin', { email: 'ada@x.example' })
    await aSignedInUser(api, 'viewer', { email: 'eve@x.example' })
    await api.refuses('POST', '/api/invitations/', [{ role: 'admin', email: 'ADA@x.example' }, 'email', 'email_taken'])
    const token = await inviteToken(api, { role: 'viewer' })
    const taken = await callFromPage(api, 'POST', '/api/session/link/', { body: { token, email: ada.email } })
    assert.deepEqual([taken.status, taken.body.code], [409, 'email_taken'])
    const { results } = await api.get('/api/users/')
    const eve = results.find(({ role }: { role: string }) => role === 'viewer')
    const reset = readToken((await api.post(`/api/users/${eve.id}/reset_link/`)).link)
    await api.patch(`/api/users/${eve.id}/`, { disabled: true })
    const body = { token: reset, password: aPassword }
    assert.equal((await callFromPage(api, 'POST', '/api/session/link/', { body })).body.code, 'link_unknown')
    const refused = await api.call('POST', `/api/users/${eve.id}/reset_link/`)
    assert.deepEqual([refused.status, refused.body.code], [403, 'user_disabled'])
  })

  it('begins with the public URL, which must be the root of a host', async t => {
    const linkOf = async (options: object) => {
      const api = await startManagement(t, options)
      const { status, body } = await api.call('POST', '/api/invitations/', { body: { role: 'viewer' } })
      return { status, body, url: api.url }
    }
    const own = await linkOf({})
    assert.ok(own.body.link.startsWith(`${own.url}/ui/welcome#`), own.body.link)
    const behind = await linkOf({ publicUrl: 'https://pennon.example' })
    assert.ok(behind.body.link.startsWith('https://pennon.example/ui/welcome#'), behind.body.link)
    const below = await linkOf({ publicUrl: 'https://shop.example/flags' })
    assert.deepEqual([below.status, below.body.code], [400, 'public_url_has_path'])
  })
})

describe('guessing passwords', () => {
  it('waits longer after each failure on one account, from whichever address, and a link still works', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const guess = (n: number, password = 'wrong horse battery') =>
      signIn(api, ada.email, password, { 'x-forwarded-for': `192.0.2.${n}` })
    for (let n = 0; n < 5; n++) assert.equal((await guess(n)).status, 401)
    const waiting = await guess(9, aPassword)
    assert.deepEqual([waiting.status, waiting.body.code], [429, 'too_many_attempts'])
    assert.equal(waiting.headers.get('retry-after'), '1')
    assert.match(waiting.body.detail, /Try again in 1 s\.$/)
    api.clock.advance(1_000)
    assert.equal((await guess(10)).status, 401)
    assert.equal((await guess(11)).headers.get('retry-after'), '2')
    const reset = readToken((await api.post(`/api/users/${ada.id}/reset_link/`)).link)
    const body = { token: reset, password: 'another password' }
    assert.equal((await callFromPage(api, 'POST', '/api/session/link/', { body })).status, 200)
    api.clock.advance(15 * 60_000)
    assert.equal((await guess(12, 'another password')).status, 200, 'no wait is longer than 15 minutes')
    assert.equal((await guess(13)).status, 401, 'a success starts afresh')
    assert.equal((await guess(14, 'another password')).status, 200)
  })

  it('waits on unknown addresses as on known ones', async t => {
    const api = await startManagement(t)
    const statuses: number[] = []
    for (let n = 0; n < 6; n++)
      statuses.push((await signIn(api, 'nobody@x.example', aPassword, { 'x-forwarded-for': `192.0.2.${n}` })).status)
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
  })

  it('is limited to 20 attempts a minute from one address, of IPv6 its /64; links count too', async t => {
    const api = await startManagement(t)
    const from = (address: string) => ({ 'x-forwarded-for': address })
    for (let n = 0; n < 10; n++) {
      assert.equal((await signIn(api, `a${n}@x.example`, aPassword, from(`2001:db8::${n + 1}`))).status, 401)
      const body = { token: `${n}`.repeat(43) }
      const headers = from(`2001:db8::ffff:${n}`)
      assert.equal((await callFromPage(api, 'POST', '/api/session/link/', { body, headers })).status, 404)
    }
    const last = await signIn(api, 'z@x.example', aPassword, from('2001:db8::1'))
    assert.deepEqual([last.status, last.headers.get('retry-after')], [429, '60'])
    assert.equal((await signIn(api, 'z@x.example', aPassword, from('2001:db8:1::1'))).status, 401)
    api.clock.advance(60_000)
    assert.equal((await signIn(api, 'y@x.example', aPassword, from('2001:db8::1'))).status, 401)
  })

  it('is not counted against those who sign in rightly, each at most ten times a minute', async t => {
    const api = await startManagement(t)
    const users = [
      await aSignedInUser(api, 'admin'),
      await aSignedInUser(api, 'viewer'),
      await aSignedInUser(api, 'editor'),
    ]
    for (const { email } of users)
      for (let n = 0; n < 10; n++) assert.equal((await signIn(api, email)).status, 200, email)
    const many = await signIn(api, users[0]!.email)
    assert.deepEqual([many.status, many.headers.get('retry-after')], [429, '60'])
    const { results } = await api.get('/api/activity_log/?scopes=User&limit=100')
    assert.equal(fieldOf(results, 'activity').filter(activity => activity === 'signed_in').length, 33)
    api.clock.advance(60_000)
    assert.equal((await signIn(api, users[0]!.email)).status, 200)
  })

  it('by others does not keep users out where they signed in before, whatever others do', async t => {
    const api = await startManagement(t)
    const home = { 'x-forwarded-for': '192.0.2.1' }
    const ada = await aSignedInUser(api, 'admin')
    assert.equal((await signIn(api, ada.email, aPassword, home)).status, 200)
    for (let n = 0; n < 6; n++)
      await signIn(api, ada.email, 'wrong horse battery', { 'x-forwarded-for': `198.51.100.${n}` })
    const elsewhere = await signIn(api, ada.email, aPassword, { 'x-forwarded-for': '203.0.113.1' })
    assert.equal(elsewhere.status, 429)
    for (let n = 0; n < 5; n++) assert.equal((await signIn(api, ada.email, 'wrong', home)).status, 401)
    assert.equal((await signIn(api, ada.email, aPassword, home)).status, 429, 'guesses at home are limited too')
    api.clock.advance(1_000)
    assert.equal((await signIn(api, ada.email, aPassword, home)).status, 200)
  })

  it('counts attempts that have to wait on their address, whose refusals cost the state nothing', async t => {
    let stateCalls = 0
    const count = () => void stateCalls++
    const api = await startManagement(t, { before: { countSignInAttempt: count, findUserByEmail: count } })
    const from = { 'x-forwarded-for': '192.0.2.1' }
    for (let n = 0; n < 20; n++) await signIn(api, 'nobody@x.example', aPassword, from)
    const other = await signIn(api, 'other@x.example', aPassword, from)
    assert.deepEqual([other.status, other.headers.get('retry-after')], [429, '60'])
    stateCalls = 0
    for (let n = 0; n < 5; n++) assert.equal((await signIn(api, 'other@x.example', aPassword, from)).status, 429)
    assert.equal(stateCalls, 0)
  })

  it('does not shut out people with a link at the same address', async t => {
    const api = await startManagement(t)
    const token = await inviteToken(api, { role: 'admin', email: 'ada@x.example' })
    const post = (path: string, body: object) => callFromPage(api, 'POST', path, { body })
    for (let n = 0; n < 21; n++) await post('/api/session/link/check/', { token: `${n}`.padStart(43, 'x') })
    assert.equal((await post('/api/session/link/check/', { token: 'y'.repeat(43) })).status, 429)
    assert.equal((await post('/api/session/link/check/', { token })).status, 200)
    assert.equal((await post('/api/session/link/', { token, password: aPassword })).status, 200)
  })

  it('is not counted on an account while too many passwords are being hashed, and a link without one works', async t => {
    const held = Promise.withResolvers<void>()
    const counted: string[] = []
    const before = {
      findUserByEmail: () => held.promise,
      countSignInAttempt: (kind: string) => void counted.push(kind),
    }
    const api = await startManagement(t, { before })
    const token = await inviteToken(api, { role: 'viewer' })
    const refused: (string | null)[] = []
    const guesses = Array.from({ length: 2 + waitingMax + 3 }, async (_, n) => {
      const { status, headers } = await signIn(api, `a${n}@x.example`, aPassword, { 'x-forwarded-for': `192.0.${n}.1` })
      if (status === 429) refused.push(headers.get('retry-after'))
    })
    await eventually(() => refused.length === 3)
    assert.equal((await callFromPage(api, 'POST', '/api/session/link/', { body: { token } })).status, 200)
    held.resolve()
    await Promise.all(guesses)
    assert.deepEqual(refused, ['1', '1', '1'])
    assert.equal(counted.filter(kind => kind === 'account').length, 2 + waitingMax)
  })

  it('takes as long for a password of any length, and logs a failure only after the answer', async t => {
    const held = Promise.withResolvers<void>()
    const api = await startManagement(t, { before: { recordFailedSignIn: () => held.promise } })
    const ada = await aSignedInUser(api, 'admin')
    for (const email of [ada.email, 'nobody@x.example'])
      assert.equal((await signIn(api, email, aPassword.padEnd(passwordLength.max + 1))).status, 401)
    held.resolve()
    const failures = async () => {
      const { results } = await api.get('/api/activity_log/?scopes=User')
      return fieldOf(results, 'activity').filter(activity => activity === 'sign_in_failed').length
    }
    await eventually(async () => (await failures()) === 1)
  })
})
