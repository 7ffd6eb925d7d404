// Sessions on fronts composed as in production: two fronts over one state, and the routes of the wire beside the private API.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { createLogger } from '#telemetry/log.ts'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { testProjectKey } from '../support/pennon.ts'
import {
  aPassword,
  aSignedInUser,
  callFromPage,
  callsTo,
  inviteToken,
  pageHeaders,
  signIn,
  toPerson,
} from '../support/people.ts'
import { tempDir } from '../support/temp-dir.ts'

async function startTwoFronts(t: TestContext) {
  const settings = { PENNON_DATA: tempDir(t) }
  const fronts = [await startFront(settings), await startFront(settings)]
  t.after(async () => {
    for (const front of fronts.toReversed()) await front.close()
  })
  return fronts.map(({ url }) => callsTo(url)) as [ReturnType<typeof callsTo>, ReturnType<typeof callsTo>]
}

describe('two fronts', () => {
  it('know each other’s sessions, and see within seconds that one ended or its user was disabled', async t => {
    const [one, other] = await startTwoFronts(t)
    const ada = await aSignedInUser(one, 'admin')
    const eve = await aSignedInUser(one, 'viewer')
    const stateOn = async (front: typeof one, { cookie }: typeof ada) =>
      (await callFromPage(front, 'GET', '/api/session/', { headers: { cookie } })).status
    for (const person of [ada, eve]) for (const front of [one, other]) assert.equal(await stateOn(front, person), 200)
    const second = toPerson(other, await signIn(other, eve.email))
    assert.equal(await stateOn(one, second), 200)
    assert.equal((await second.call('DELETE', '/api/session/')).status, 204)
    assert.equal(await stateOn(other, second), 401)
    await eventually(async () => (await stateOn(one, second)) === 401)
    const disabled = await ada.call('PATCH', `/api/users/${eve.id}/`, { body: { disabled: true } })
    assert.equal(disabled.status, 200, disabled.text)
    assert.equal(await stateOn(one, eve), 401)
    await eventually(async () => (await stateOn(other, eve)) === 401)
  })

  it('let people change their own name, whose store is in a thread of its own', async t => {
    const [one] = await startTwoFronts(t)
    const ada = await aSignedInUser(one, 'admin')
    const changed = await ada.call('PATCH', '/api/session/user/', { body: { name: 'Ada Lovelace' } })
    assert.deepEqual([changed.status, changed.body.name], [200, 'Ada Lovelace'])
  })

  it('count attempts together', async t => {
    const fronts = await startTwoFronts(t)
    await aSignedInUser(fronts[0], 'admin')
    const statuses: number[] = []
    for (let n = 0; n < 6; n++)
      statuses.push((await signIn(fronts[n % 2]!, 'admin@x.example', 'wrong horse battery')).status)
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
  })
})

describe('the cookie of a session', () => {
  it('changes nothing on the routes of the wire, which pages of other sites may call', async t => {
    const front = await startFront()
    t.after(() => front.close())
    const api = callsTo(front.url)
    const { cookie } = await aSignedInUser(api, 'admin')
    const wire = front.routes.filter(({ access, group }) => access !== 'personal_key' && group !== 'management')
    assert.ok(wire.length > 50)
    for (const { method, path, access } of wire) {
      if (path === '/metrics') continue
      const address = path.replaceAll(/:(\w+)/g, (_, name: string) => (name === 'token' ? testProjectKey : '1'))
      const statusWith = async (headers: object) =>
        (await api.call(method, address, { key: null, headers: { ...headers } })).status
      const status = await statusWith({ ...pageHeaders, cookie })
      assert.equal(status, await statusWith(pageHeaders), `${method} ${path}`)
      if (access === 'server_key') assert.equal(status, 401, `${method} ${path}`)
    }
    const readers = globSync('src/**/*.ts').filter(file =>
      /headers\.cookie|\bcookie'\]/.test(readFileSync(file, 'utf8')),
    )
    assert.deepEqual(readers, ['src/http/management/kit/session-cookie.ts'])
  })

  it('opens the metrics to admins only', async t => {
    const front = await startFront({ PENNON_METRICS_REQUIRE_KEY: 'true' })
    t.after(() => front.close())
    const api = callsTo(front.url)
    for (const [role, status] of [
      ['admin', 200],
      ['editor', 403],
    ] as const) {
      const { cookie } = await aSignedInUser(api, role)
      assert.equal((await callFromPage(api, 'GET', '/metrics', { headers: { cookie } })).status, status)
    }
  })

  it('works on the port of the private API alone, if there is one', async t => {
    const front = await startFront({ PENNON_ADMIN_PORT: '0' })
    t.after(() => front.close())
    const { cookie } = await aSignedInUser(callsTo(front.adminUrl!), 'admin')
    const ask = (url: string) => callFromPage(callsTo(url), 'GET', '/api/session/', { headers: { cookie } })
    assert.equal((await ask(front.adminUrl!)).status, 200)
    assert.equal((await ask(front.url)).status, 404)
    assert.equal((await signIn(callsTo(front.url), 'admin@x.example')).status, 404)
  })
})

describe('what is logged of a sign-in', () => {
  it('has no password, token, secret of a session or hash of one, at the most talkative level', async t => {
    const lines: string[] = []
    const logger = createLogger({ level: 'trace', process: 'front' }, { write: line => void lines.push(line) })
    const front = await startFront({ PENNON_LOG_LEVEL: 'trace' }, logger)
    t.after(() => front.close())
    const api = callsTo(front.url)
    const token = await inviteToken(api, { role: 'admin', email: 'ada@x.example' })
    const post = (path: string, body: object) => callFromPage(api, 'POST', path, { body })
    await post('/api/session/link/check/', { token })
    await post('/api/session/link/', { token, password: aPassword, pasword: aPassword })
    const ada = toPerson(api, await post('/api/session/link/', { token, password: aPassword }))
    await post('/api/session/link/', { token })
    await signIn(api, ada.email, 'wrong horse battery')
    await signIn(api, ada.email)
    await ada.call('GET', '/api/session/')
    await callFromPage(api, 'GET', '/api/session/', { headers: { cookie: `${ada.cookie}x` } })
    await ada.call('DELETE', '/api/session/')
    const secrets = [aPassword, 'wrong horse battery', token, ada.cookie.slice(ada.cookie.indexOf('=') + 1)]
    const hashes = secrets.map(secret => createHash('sha256').update(secret).digest('hex'))
    assert.ok(lines.length > 5, 'requests are logged at this level')
    const text = lines.join('')
    for (const secret of [...secrets, ...hashes, 'argon2id']) assert.ok(!text.includes(secret), secret)
  })
})
