import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { listScopesOfUser, type Role, roles } from '#core/users/user.ts'
import { eventually } from '../support/eventually.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'
import { aPassword, aSignedInUser, callFromPage, inviteToken, readCookie, signIn } from '../support/people.ts'

describe('users', () => {
  it('are listed, read, changed and deleted by admins and by keys with all scopes and projects only', async t => {
    const api = await startManagement(t)
    const admin = await aSignedInUser(api, 'admin')
    const eve = await aSignedInUser(api, 'viewer')
    const { body } = await admin.call('GET', '/api/users/?limit=1')
    assert.deepEqual([body.count, body.results[0].email], [2, admin.email])
    assert.ok(body.next.includes('offset=1'))
    const shown = await admin.call('GET', `/api/users/${eve.id}/`)
    assert.deepEqual(shown.body, {
      ...{ id: eve.id, email: eve.email, name: 'viewer', role: 'viewer', sees_persons: true, disabled: false },
      ...{ created_at: '2026-05-01T12:00:00.000Z', last_seen_at: '2026-05-01T12:00:00.000Z', has_password: true },
    })
    // A program may send an object back as it read it.
    const sentBack = { ...shown.body, id: admin.id, created_at: '2020-01-01T00:00:00Z', name: 'Eve', role: 'editor' }
    const changed = await admin.call('PATCH', `/api/users/${eve.id}/`, { body: sentBack })
    assert.deepEqual(changed.body, { ...shown.body, name: 'Eve', role: 'editor' })
    const user = `/api/users/${eve.id}/`
    await api.refuses(
      'PATCH',
      user,
      [{ role: 'owner' }, 'role', 'invalid_input'],
      [{ rolle: 'admin' }, 'rolle', 'invalid_input'],
      [{ email: 'eve' }, 'email', 'invalid_input'],
      [{ email: 'ADMIN@x.example' }, 'email', 'email_taken'],
      [{ name: ' ' }, 'name', 'invalid_input'],
      [{ disabled: 'yes' }, 'disabled', 'invalid'],
    )
    const limited = await api.addKey(['*'], [1])
    for (const [method, path] of [
      ['GET', '/api/users/'],
      ['PATCH', user],
      ['DELETE', user],
      ['POST', '/api/invitations/'],
    ] as const) {
      const body = method === 'POST' ? { role: 'admin' } : {}
      const sent = method === 'GET' ? {} : { body }
      assert.equal((await api.call(method, path, { key: limited, ...sent })).status, 403, path)
    }
    assert.equal((await admin.call('DELETE', user)).status, 204)
    for (const path of [user, '/api/users/none/']) assert.equal((await admin.call('GET', path)).status, 404)
    assert.equal((await eve.call('GET', '/api/session/')).status, 401)
  })

  it('keep one admin who is not disabled', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const eve = await aSignedInUser(api, 'admin', { email: 'eve@x.example' })
    await api.patch(`/api/users/${eve.id}/`, { disabled: true })
    const own = `/api/users/${ada.id}/`
    for (const body of [{ role: 'editor' }, { disabled: true }]) {
      const refused = await ada.call('PATCH', own, { body })
      assert.deepEqual([refused.status, refused.body.code], [409, 'last_admin'])
    }
    assert.equal((await ada.call('DELETE', own)).body.code, 'last_admin')
    await api.patch(`/api/users/${eve.id}/`, { disabled: false })
    const both = await Promise.all(
      [ada.id, eve.id].map(id => api.call('PATCH', `/api/users/${id}/`, { body: { role: 'viewer' } })),
    )
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409])
  })

  it('are out at once when they are disabled or get more rights, and stay with fewer when they get fewer', async t => {
    const api = await startManagement(t)
    await aSignedInUser(api, 'admin')
    const eve = await aSignedInUser(api, 'editor')
    const change = (body: object) => api.patch(`/api/users/${eve.id}/`, body)
    await change({ role: 'viewer', sees_persons: false })
    assert.equal((await eve.call('GET', '/api/projects/1/persons/')).status, 403)
    assert.equal((await eve.call('GET', '/api/projects/1/feature_flags/')).status, 200)
    await change({ sees_persons: true })
    assert.equal((await eve.call('GET', '/api/session/')).body.code, 'session_ended')
    const cookie = readCookie(await signIn(api, eve.email))
    const ask = () => callFromPage(api, 'GET', '/api/session/', { headers: { cookie } })
    assert.equal((await ask()).status, 200)
    await change({ disabled: true })
    assert.equal((await ask()).body.code, 'session_ended')
    assert.equal((await signIn(api, eve.email)).status, 401)
  })

  it('take the keys and invitations that they made with them when they lose the rights or are deleted', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'admin')
    const makeKey = async (scopes: string[], as: (typeof ada)['call']) => {
      const made = await as('POST', '/api/personal_api_keys/', { body: { label: scopes.join(), scopes } })
      assert.equal(made.status, 201, made.text)
      return made.body.value as string
    }
    for (const [body, left] of [
      [{ role: 'editor' }, [200, 401, 401]],
      [{ disabled: true }, [401, 401, 401]],
      [null, [401, 401, 401]],
    ] as const) {
      const email = `eve${left[0]}${body === null}@x.example`
      const eve = await aSignedInUser(api, 'admin', { email })
      const all = await makeKey(['*'], eve.call)
      const keys = [
        await makeKey(['feature_flag:write'], eve.call),
        all,
        await makeKey(['*'], (method, path, options) => api.call(method, path, { key: all, ...options })),
      ]
      const others = await makeKey(['*'], ada.call)
      const invitations = [eve, ada].map(async by => {
        const made = await by.call('POST', '/api/invitations/', { body: { role: 'admin' } })
        return made.body.id as string
      })
      const [lost, kept] = await Promise.all(invitations)
      const statuses = () =>
        Promise.all(keys.map(async key => (await api.call('GET', '/api/personal_api_keys/@current/', { key })).status))
      assert.deepEqual(await statuses(), [200, 200, 200])
      if (body === null) await ada.call('DELETE', `/api/users/${eve.id}/`)
      else await api.patch(`/api/users/${eve.id}/`, body)
      assert.deepEqual(await statuses(), left)
      assert.equal((await api.call('GET', '/api/users/', { key: others })).status, 200)
      const open = await ada.call('GET', '/api/invitations/')
      assert.ok(fieldOf(open.body.results, 'id').includes(kept) && !fieldOf(open.body.results, 'id').includes(lost))
      const { results } = await api.get('/api/activity_log/?scopes=PersonalAPIKey')
      assert.equal(results[0]?.activity, 'deleted', JSON.stringify(results[0]))
    }
  })

  it('are invited by links that admins list and revoke', async t => {
    const api = await startManagement(t)
    const token = await inviteToken(api, { role: 'editor', email: 'ada@x.example', name: 'Ada' })
    const { count, results } = await api.get('/api/invitations/')
    const { id, ...shown } = results[0]
    assert.deepEqual(
      [count, shown],
      [
        1,
        {
          ...{ purpose: 'invitation', role: 'editor', sees_persons: true, email: 'ada@x.example', name: 'Ada' },
          ...{ created_at: '2026-05-01T12:00:00.000Z', expires_at: '2026-05-08T12:00:00.000Z' },
        },
      ],
    )
    const limited = await api.addKey(['*'], [1])
    for (const path of ['/api/invitations/', `/api/invitations/${id}/`])
      assert.equal((await api.call(path.length > 20 ? 'DELETE' : 'GET', path, { key: limited })).status, 403)
    assert.equal((await api.call('DELETE', `/api/invitations/${id}/`)).status, 204)
    assert.equal((await api.call('DELETE', `/api/invitations/${id}/`)).status, 404)
    assert.equal((await api.get('/api/invitations/')).count, 0)
    const spent = await callFromPage(api, 'POST', '/api/session/link/', { body: { token } })
    assert.deepEqual([spent.status, spent.body.code], [404, 'link_unknown'])
    const log = await api.get('/api/activity_log/?scopes=User')
    assert.deepEqual(fieldsOf(log.results, 'activity').flat(), ['invitation_deleted', 'invited'])
  })

  it('are the authors of what they change, with name and address', async t => {
    const api = await startManagement(t)
    const ada = await aSignedInUser(api, 'editor', { email: 'ada@x.example', name: 'Ada' })
    const made = await ada.call('POST', '/api/projects/1/feature_flags/', { body: { key: 'a' } })
    assert.equal(made.status, 201, made.text)
    const by = { uuid: ada.id, first_name: 'Ada', email: 'ada@x.example' }
    const shownOf = ({ uuid, first_name, email }: typeof by) => ({ uuid, first_name, email })
    assert.deepEqual(shownOf(made.body.created_by), by)
    const [entry] = (await api.get('/api/projects/1/activity_log/')).results
    assert.deepEqual([entry.scope, shownOf(entry.user)], ['FeatureFlag', by])
    const { results } = await api.get(`/api/activity_log/?user=${entry.user.id}&scopes=FeatureFlag`)
    assert.equal(results.length, 1)
  })
})

describe('the activity log of users', () => {
  it('has what was done and by whom, without any secret, hash or token', async t => {
    const api = await startManagement(t)
    const secrets: string[] = [aPassword, 'another password', 'wrong horse battery']
    const token = await inviteToken(api, { role: 'admin', email: 'ada@x.example', name: 'Ada' })
    const spent = await callFromPage(api, 'POST', '/api/session/link/', {
      body: { token, password: aPassword },
      headers: { 'user-agent': 'Browser 1', 'x-forwarded-for': '192.0.2.7' },
    })
    const cookie = readCookie(spent)
    secrets.push(token, cookie.slice(cookie.indexOf('=') + 1))
    await signIn(api, 'ada@x.example', 'wrong horse battery')
    await signIn(api, 'nobody@x.example')
    // A failure is recorded after its answer.
    await eventually(async () => (await api.get('/api/activity_log/?scopes=User')).results.length === 4)
    const eve = await aSignedInUser(api, 'viewer')
    await api.patch(`/api/users/${eve.id}/`, { role: 'editor', disabled: true })
    await callFromPage(api, 'PATCH', '/api/session/user/', {
      headers: { cookie },
      body: { current_password: aPassword, password: 'another password' },
    })
    await api.call('DELETE', `/api/users/${eve.id}/`)
    const { results } = await api.get('/api/activity_log/?scopes=User&limit=100')
    const acts = fieldsOf(results, 'activity').flat().toReversed()
    assert.deepEqual(acts, [
      ...['invited', 'created', 'signed_in', 'sign_in_failed', 'invited', 'created', 'signed_in', 'updated'],
      ...['password_changed', 'signed_in', 'deleted'],
    ])
    const signedIn = results.findLast(({ activity }: { activity: string }) => activity === 'signed_in')
    assert.deepEqual(fieldsOf(signedIn.detail.changes, 'field', 'after'), [
      ['address', '192.0.2.7'],
      ['user_agent', 'Browser 1'],
    ])
    assert.deepEqual([signedIn.user.first_name, signedIn.project_id], ['Ada', null])
    const text = JSON.stringify(results)
    const hashes = secrets.map(secret => createHash('sha256').update(secret).digest('hex'))
    for (const secret of [...secrets, ...hashes, 'argon2id']) assert.ok(!text.includes(secret), secret)
    assert.ok(!text.includes('nobody@x.example'), 'anybody could fill the log with made-up addresses')
    const lesser = await api.addKey(['activity_log:read', 'user:read'])
    assert.deepEqual((await api.get('/api/projects/1/activity_log/?scopes=User', lesser)).results, [])
  })
})

describe('a role', () => {
  /** What the table of roles says, stated once more in other words. */
  function mayCall(role: Role, scope: string, scopeOfPersons: string | undefined, id: string): boolean {
    if (role === 'admin' || scope === 'any') return true
    if (scope === '*' || scopeOfPersons === '*') return false
    return (scopeOfPersons ?? scope).split(' ').every(one => {
      const [object = '', access] = one.split(':')
      if (access === 'read') return true
      const edited = ['feature_flag', 'cohort', 'survey', 'early_access_feature', 'experiment', 'import_job']
      return role === 'editor' && (edited.includes(object) || id.endsWith('rejected_events_replay'))
    })
  }

  it('may call exactly the operations of the OpenAPI document whose scopes it holds', async t => {
    const api = await startManagement(t)
    const document = await api.get('/api/schema/')
    const people = await Promise.all(roles.map(role => aSignedInUser(api, role)))
    const openOnes: string[] = []
    const counts = { allowed: 0, refused: 0 }
    for (const [path, item] of Object.entries<Record<string, Record<string, unknown>>>(document.paths))
      for (const [method, operation] of Object.entries(item)) {
        const id = String(operation.operationId)
        if (operation['x-scope'] === undefined) continue
        if ((operation.security as unknown[]).length === 0) {
          openOnes.push(id)
          continue
        }
        // The address names a project that does not exist, so nothing is changed or deleted.
        const address = path.replace('{project_id}', '999').replaceAll(/\{\w+\}/g, '1')
        for (const [index, role] of roles.entries()) {
          const sent = method === 'get' ? {} : { body: {} }
          const { status, body, text } = await people[index]!.call(method.toUpperCase(), address, sent)
          const of = operation as { 'x-scope': string; 'x-scope-of-persons'?: string }
          const isAllowed = mayCall(role, of['x-scope'], of['x-scope-of-persons'], id)
          const what = `${role} at ${method} ${address}: ${text.slice(0, 300)}`
          if (isAllowed) assert.ok(status !== 401 && status !== 403, what)
          else assert.deepEqual([status, body.code], [403, 'permission_denied'], what)
          counts[isAllowed ? 'allowed' : 'refused']++
        }
      }
    assert.deepEqual(openOnes.sort(), [
      'session_create',
      'session_destroy',
      'session_link_check',
      'session_link_create',
    ])
    assert.ok(counts.allowed > 300 && counts.refused > 100, JSON.stringify(counts))
  })

  it('of a viewer without persons reads neither persons nor what shows them', () => {
    const all = listScopesOfUser({ role: 'viewer', seesPersons: true })
    const fewer = listScopesOfUser({ role: 'viewer', seesPersons: false })
    assert.deepEqual(all.filter(scope => !fewer.includes(scope)).sort(), [
      'ingestion_warning:read',
      'person:read',
      'query:read',
      'session_recording:read',
    ])
    assert.ok(all.every(scope => scope.endsWith(':read')))
    assert.deepEqual(
      listScopesOfUser({ role: 'editor', seesPersons: false }),
      listScopesOfUser({ role: 'editor', seesPersons: true }),
    )
  })

  it('of a viewer without persons does not tell the values of flags for a person', async t => {
    const api = await startManagement(t)
    const { id } = await api.post('/api/projects/1/feature_flags/', { key: 'a' })
    const viewers = [
      { person: await aSignedInUser(api, 'viewer'), status: 200 },
      { person: await aSignedInUser(api, 'viewer', { email: 'eve@x.example', sees_persons: false }), status: 403 },
    ]
    const flags = '/api/projects/1/feature_flags/'
    for (const { person, status } of viewers) {
      assert.equal((await person.call('GET', `${flags}evaluation_reasons/?distinct_id=ada`)).status, status)
      const explained = await person.call('POST', `${flags}${id}/explain/`, { body: { distinct_id: 'ada' } })
      assert.equal(explained.status, status, explained.text)
      assert.equal((await person.call('GET', '/api/projects/1/ingestion_warnings/')).status, status)
    }
    const key = await api.addKey(['feature_flag:read'])
    assert.equal((await api.call('GET', `${flags}evaluation_reasons/?distinct_id=ada`, { key })).status, 200)
  })

  it('of an editor prepares imports, which an admin publishes and undoes', async t => {
    const api = await startManagement(t)
    const editor = await aSignedInUser(api, 'editor')
    const admin = await aSignedInUser(api, 'admin')
    const jobs = '/api/projects/1/import_jobs/'
    const make = async () => (await editor.call('POST', jobs, { body: { source: 'x' } })).body.id
    const [thrownAway, kept] = [await make(), await make()]
    assert.equal((await editor.call('POST', `${jobs}${thrownAway}/discard/`)).status, 202)
    const refused = await editor.call('POST', `${jobs}${kept}/publish/`)
    assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
    assert.equal((await admin.call('POST', `${jobs}${kept}/publish/`)).status, 202)
    const writer = await api.addKey(['import_job:write'])
    assert.equal((await api.call('POST', `${jobs}${kept}/publish/`, { key: writer })).status, 202, 'keys are as before')
  })
})
