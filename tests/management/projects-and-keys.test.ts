import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clientSettings } from '#core/client-settings.ts'
import type { Member } from '#core/resource.ts'
import { PortError } from '#ports/port-error.ts'
import { eventually } from '../support/eventually.ts'
import { fieldOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'

describe('projects', () => {
  it('are created with defaults, or with every field set', async t => {
    const api = await startManagement(t)
    const plain = await api.post('/api/projects/', { name: 'Plain' })
    const { uuid, api_token, ...rest } = plain
    assert.match(uuid, /^[0-9a-f-]{36}$/)
    assert.match(api_token, /^phc_[0-9A-Za-z]{43}$/)
    assert.deepEqual(rest, {
      id: 2,
      organization: '00000000-0000-4000-8000-000000000001',
      name: 'Plain',
      secret_api_token: null,
      secret_api_token_backup: null,
      timezone: 'UTC',
      anonymize_ips: false,
      geoip_enabled: true,
      property_matching_version: 1,
      quotas: {
        events: null,
        feature_flag_requests: null,
        exceptions: null,
        recordings: null,
        llm_events: null,
        survey_responses: null,
      },
      drop_events_older_than_seconds: null,
      person_processing_opt_out: false,
      feature_flag_called_dedup: false,
      group_types_frozen: false,
      cookieless_server_hash_mode: 1,
      ...Object.fromEntries(Object.entries<Member>(clientSettings).map(([name, { shown = null }]) => [name, shown])),
      person_on_events_querying_enabled: true,
      created_at: '2026-05-01T12:00:00.000Z',
    })
    const given = {
      name: 'Given',
      timezone: 'Europe/Vienna',
      anonymize_ips: true,
      geoip_enabled: false,
      property_matching_version: 2,
      api_token: 'my-own_token.1',
      drop_events_older_than_seconds: 86_400,
      person_processing_opt_out: true,
      feature_flag_called_dedup: true,
      group_types_frozen: true,
      cookieless_server_hash_mode: 2,
      quotas: { events: 0, llm_events: 7 },
    }
    const body = await api.post('/api/organizations/@current/projects/', given)
    assert.deepEqual({ ...body, quotas: null }, { ...body, ...given, id: 3, quotas: null })
    assert.deepEqual([body.quotas.events, body.quotas.llm_events, body.quotas.exceptions], [0, 7, null])
  })

  it('have cookieless mode 1 when new, and again when the mode is set to null', async t => {
    const api = await startManagement(t)
    const mode = async (patch: object) => (await api.patch('/api/projects/1/', patch)).cookieless_server_hash_mode
    assert.equal(await mode({}), 1)
    assert.equal(await mode({ cookieless_server_hash_mode: 2 }), 2)
    assert.equal(await mode({ person_processing_opt_out: true }), 2)
    assert.equal(await mode({ cookieless_server_hash_mode: null }), 1)
    assert.equal(await mode({ cookieless_server_hash_mode: 0 }), 0)
  })

  it('are changed only in the fields and quotas that a patch contains, and the response waits until these are served', async t => {
    const api = await startManagement(t)
    const before = api.served.length
    await api.patch('/api/projects/1/', { quotas: { events: 5, recordings: 0 } })
    const body = await api.patch('/api/environments/@current/', {
      name: 'Renamed',
      quotas: { recordings: null },
      api_token: 'ignored',
      id: 99,
    })
    assert.deepEqual(
      [body.id, body.name, body.api_token, body.quotas.events, body.quotas.recordings],
      [1, 'Renamed', 'phc_first', 5, null],
    )
    assert.equal(api.served.length, before + 2)
  })

  it('get a new project API key on request', async t => {
    const api = await startManagement(t)
    const body = await api.patch('/api/projects/1/reset_token/')
    assert.match(body.api_token, /^phc_[0-9A-Za-z]{43}$/)
    assert.equal((await api.get('/api/projects/1')).api_token, body.api_token)
  })

  it('are no longer found once deleted, and their ids are never reused', async t => {
    const api = await startManagement(t)
    await api.post('/api/projects/', { name: 'Second' })
    const deleted = await api.call('DELETE', '/api/projects/2/')
    assert.deepEqual([deleted.status, deleted.text], [204, ''])
    assert.equal((await api.call('GET', '/api/projects/2/')).status, 404)
    assert.equal((await api.call('GET', '/api/projects/2/feature_flags/')).status, 404)
    assert.equal((await api.post('/api/projects/', { name: 'Third' })).id, 3)
  })

  it('are listed in pages with absolute URLs of the adjacent pages', async t => {
    const api = await startManagement(t)
    for (const name of ['b', 'c', 'd', 'e']) await api.post('/api/projects/', { name })
    const path = `/api/projects/?limit=2&_=%26y`
    assert.deepEqual(fieldOf((await api.pages(path)).flat(), 'id'), [1, 2, 3, 4, 5])
    const { count, previous, next } = await api.get(`${path}&offset=2`)
    assert.deepEqual([count, previous, next], [5, `${api.url}${path}`, `${api.url}${path}&offset=4`])
    assert.equal((await api.get(`${path}&offset=4`)).previous, `${api.url}${path}&offset=2`)
  })

  it('are refused with the name of the faulty field, and then nothing is created', async t => {
    const api = await startManagement(t)
    await api.refuses(
      'POST',
      '/api/projects/',
      [{}, 'name', 'required'],
      [{ name: 5 }, 'name', 'invalid'],
      [{ name: '' }, 'name', 'invalid_input'],
      [{ name: '  ' }, 'name', 'invalid_input'],
      [{ name: 'x', timezone: 'Mars/Base' }, 'timezone', 'invalid_input'],
      [{ name: 'x', timezone: '+01:00' }, 'timezone', 'invalid_input'],
      [{ name: 'x', anonymize_ips: 'yes' }, 'anonymize_ips', 'invalid'],
      [{ name: 'x', property_matching_version: 3 }, 'property_matching_version', 'invalid_input'],
      [{ name: 'x', quotas: { events: -1 } }, 'quotas.events', 'invalid_input'],
      [{ name: 'x', quotas: { events: '5' } }, 'quotas.events', 'invalid'],
      [{ name: 'x', quotas: [] }, 'quotas', 'invalid'],
      [{ name: 'x', api_token: 'phc_first' }, 'api_token', 'unique'],
      [{ name: 'x', api_token: 'phx_secret' }, 'api_token', 'invalid_input'],
      [{ name: 'x', api_token: 'a/b' }, 'api_token', 'invalid_input'],
      [{ name: 'x', api_token: 'ä' }, 'api_token', 'invalid_input'],
      [{ name: 'x', api_token: '' }, 'api_token', 'invalid_input'],
      [{ name: 'x', api_token: 'a'.repeat(65) }, 'api_token', 'invalid_input'],
      ['', null, 'required'],
      ['{"name":', null, 'invalid'],
      ['["x"]', null, 'invalid'],
      ['5.0', null, 'invalid'],
      [`{"name":"x","a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`, null, 'invalid'],
      ['{"__proto__":{"name":"x"}}', '__proto__', 'invalid_input'],
      ['{"name":"x","constructor":1}', 'constructor', 'invalid_input'],
      ['{"name":"y","quotas":{"__proto__":{"events":3}}}', 'quotas.__proto__'],
    )
    assert.equal((await api.get('/api/projects/')).count, 1)
    assert.equal(({} as { timezone?: string }).timezone, undefined)
  })

  it('answer 413, 405 and 404 in the format of all other errors', async t => {
    const api = await startManagement(t)
    const large = await api.call('POST', '/api/projects/', { body: { name: 'x'.repeat(1024 * 1024) } })
    assert.deepEqual([large.status, large.body.type, large.body.code], [413, 'validation_error', 'payload_too_large'])
    const { status, body } = await api.call('PUT', '/api/projects/')
    assert.deepEqual([status, body.type, body.code], [405, 'invalid_request', 'method_not_allowed'])
    for (const path of ['/api/projects/77/', '/api/projects/abc/', '/api/projects/1/nothing/', '/api/projects/1e0/']) {
      const { status, body } = await api.call('GET', path)
      assert.deepEqual([status, body.type, body.code], [404, 'invalid_request', 'not_found'], path)
    }
  })

  it('answer an invalid path in the format of all other errors', async t => {
    const api = await startManagement(t)
    await api.refuses('GET', '/api/projects/%zz/', ['', null, 'invalid_url'])
    const long = await api.call('GET', `/api/projects/1/feature_flags/${'x'.repeat(2_000)}/`)
    assert.deepEqual([long.status, long.body.type, long.body.code], [404, 'invalid_request', 'not_found'])
  })

  it('reject an invalid limit or offset', async t => {
    const api = await startManagement(t)
    await api.refuses(
      'GET',
      '/api/projects/',
      ['limit=0', 'limit'],
      ['limit=-5', 'limit'],
      ['limit=ten', 'limit'],
      ['limit=1.5', 'limit'],
      ['offset=-1', 'offset'],
      ['offset=99999999999999999999', 'offset'],
    )
    await api.get('/api/projects/?limit=5000&limit=&offset=')
  })

  it('answer 503 while the state cannot be written, and leave no change half done', async t => {
    const api = await startManagement(t, {
      before: { updateProject: () => Promise.reject(new PortError('state', 'timeout')) },
    })
    const { status, body, headers } = await api.call('PATCH', '/api/projects/1/', { body: { name: 'New' } })
    assert.deepEqual([status, body.type, body.code], [503, 'server_error', 'state_unavailable'])
    assert.equal(headers.get('retry-after'), '1')
    assert.equal((await api.get('/api/projects/1/')).name, 'First')
  })
})

describe('personal API keys', () => {
  it('show their value once', async t => {
    const api = await startManagement(t)
    const body = { label: 'ci', scopes: ['feature_flag:write', 'project:read'], scoped_teams: [1] }
    const created = await api.post('/api/personal_api_keys/', body)
    const { value, ...shown } = created
    assert.match(value, /^phx_[0-9A-Za-z]{43}$/)
    assert.deepEqual(shown, {
      ...body,
      id: shown.id,
      scoped_organizations: [],
      created_at: '2026-05-01T12:00:00.000Z',
      last_used_at: null,
    })
    assert.deepEqual(await api.get(`/api/personal_api_keys/${shown.id}/`), shown)
    const listed = await api.call('GET', '/api/personal_api_keys/')
    assert.equal(listed.body.count, 2)
    assert.ok(!listed.text.includes(value))
    assert.deepEqual((await api.get('/api/personal_api_keys/@current/', value)).scopes, body.scopes)
    assert.equal((await api.call('GET', '/api/personal_api_keys/', { key: value })).status, 403)
    assert.equal((await api.call('DELETE', '/api/personal_api_keys/@current/', { key: value })).status, 204)
    assert.equal((await api.call('GET', '/api/personal_api_keys/@current/', { key: value })).status, 401)
    assert.equal((await api.get('/api/personal_api_keys/')).count, 1)
  })

  it('show when they were last used, to the minute', async t => {
    let isDown = false
    let writeCount = 0
    const api = await startManagement(t, {
      before: {
        savePersonalKeyUses: () => {
          writeCount++
          if (isDown) throw new PortError('state', 'timeout')
        },
      },
    })
    const key = await api.addKey(['project:read'])
    const lastUsed = async () => {
      const body = await api.get('/api/personal_api_keys/')
      return body.results.find(({ label }: { label: string }) => label === 'project:read').last_used_at
    }
    const use = async () => await api.get('/api/projects/', key)
    assert.equal(await lastUsed(), null)
    await use()
    await eventually(async () => (await lastUsed()) === '2026-05-01T12:00:00.000Z')
    api.clock.advance(61_000)
    isDown = true
    const before = writeCount
    await use()
    await eventually(() => writeCount > before)
    isDown = false
    api.clock.advance(61_000)
    await use()
    await eventually(async () => (await lastUsed()) === '2026-05-01T12:02:02.000Z')
    assert.equal((await api.call('GET', '/api/personal_api_keys/@current/', { key: 'phx_unknown' })).status, 401)
  })

  it('require known scopes and projects', async t => {
    const api = await startManagement(t)
    await api.refuses(
      'POST',
      '/api/personal_api_keys/',
      [{ scopes: ['*'] }, 'label', 'required'],
      [{ label: 'x' }, 'scopes', 'required'],
      [{ label: 'x', scopes: '*' }, 'scopes', 'invalid'],
      [{ label: 'x', scopes: [] }, 'scopes', 'invalid_input'],
      [{ label: 'x', scopes: ['*', 'flags'] }, 'scopes.1', 'invalid_input'],
      [{ label: 'x', scopes: ['feature_flag:delete'] }, 'scopes.0', 'invalid_input'],
      [{ label: 'x', scopes: ['feature_flag:read', 'insight:read'] }, 'scopes.1', 'invalid_input'],
      [{ label: 'x', scopes: ['*'], scoped_teams: [1, 9] }, 'scoped_teams.1', 'invalid_input'],
      [{ label: 'x', scopes: ['*'], scoped_teams: ['1'] }, 'scoped_teams.0', 'invalid'],
    )
    const said = /^Unknown scope 'feature_flags:write'\. Did you mean feature_flag:write\? Scopes are \* or /
    const mistyped = { label: 'x', scopes: ['feature_flags:write'] }
    await api.refuses('POST', '/api/personal_api_keys/', [mistyped, 'scopes.0', 'invalid_input', said])
    assert.equal((await api.call('DELETE', '/api/personal_api_keys/none/')).status, 404)
    assert.equal((await api.call('GET', '/api/personal_api_keys/none/')).status, 404)
  })
})
