// Secret keys of projects, from their creation to what they give access to.
// Source: docs/wire/private-api.md §1; docs/wire/evaluation.md 3.1, 7.1.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { startManagement } from '../support/management-api.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

interface ProjectJson {
  readonly id: number
  readonly api_token: string
  readonly secret_api_token: string | null
  readonly secret_api_token_backup: string | null
}

async function definitionsWith(
  front: { url: string },
  secret: string | null,
  token = testProjectKey,
): Promise<{ status: number; body: { code?: string; detail?: string } }> {
  const response = await fetch(`${front.url}/flags/definitions?token=${token}&send_cohorts`, {
    headers: secret === null ? {} : { authorization: `Bearer ${secret}` },
  })
  return { status: response.status, body: (await response.json()) as { code?: string; detail?: string } }
}

describe('secret keys of a project', () => {
  const front = startedForTests(startFront)

  const projectAt = (id: number) => `/api/projects/${id}/`
  const newProject = (name: string) => front.api<ProjectJson>('POST', '/api/projects/', { name })
  const rotate = async (id: number) => {
    const rotated = await front.api<ProjectJson>('PATCH', `${projectAt(id)}rotate_secret_token/`)
    return { secret: rotated.secret_api_token!, backup: rotated.secret_api_token_backup }
  }
  const masked = (secret: string) => `phs_...${secret.slice(-4)}`
  const shownKeys = async (id: number) => {
    const { secret_api_token, secret_api_token_backup } = await front.api<ProjectJson>('GET', projectAt(id))
    return [secret_api_token, secret_api_token_backup]
  }

  it('are shown in full only once, give immediate access to flag definitions, and are masked afterwards', async () => {
    const { id, api_token, secret_api_token, secret_api_token_backup } = await newProject('masked')
    assert.deepEqual([secret_api_token, secret_api_token_backup], [null, null])
    const { secret, backup } = await rotate(id)
    assert.match(secret, /^phs_[0-9A-Za-z]{43}$/)
    assert.equal(backup, null)
    assert.equal((await definitionsWith(front, secret, api_token)).status, 200)
    assert.deepEqual(await shownKeys(id), [masked(secret), null])
    const renamed = await front.api<ProjectJson>('PATCH', projectAt(id), { name: 'renamed' })
    assert.equal(renamed.secret_api_token, masked(secret))
    const { results } = await front.api<{ results: ProjectJson[] }>('GET', '/api/projects/')
    assert.equal(results.find(project => project.id === id)?.secret_api_token, masked(secret))
  })

  it('stay valid as backup after a rotation, until the next rotation or until the backup is deleted', async () => {
    const { id, api_token } = await newProject('rotated')
    const first = (await rotate(id)).secret
    const second = await rotate(id)
    assert.equal(second.backup, masked(first))
    const third = (await rotate(id)).secret
    const statuses = async () =>
      Promise.all([first, second.secret, third].map(async key => (await definitionsWith(front, key, api_token)).status))
    assert.deepEqual(await statuses(), [401, 200, 200])
    const after = await front.api<ProjectJson>('PATCH', `${projectAt(id)}delete_secret_token_backup/`)
    assert.deepEqual([after.secret_api_token, after.secret_api_token_backup], [masked(third), null])
    assert.deepEqual(await statuses(), [401, 401, 200])
    assert.deepEqual(await shownKeys(id), [masked(third), null])
    await front.api('PATCH', `${projectAt(id)}delete_secret_token_backup/`)
    assert.deepEqual(await statuses(), [401, 401, 200])
  })

  it('give access only to their own project, and stop working when it is deleted', async () => {
    const [own, other] = [await newProject('own'), await newProject('other')]
    const { secret } = await rotate(own.id)
    const refused = { code: 'authentication_failed', detail: 'Secret API token is invalid.' }
    const elsewhere = await definitionsWith(front, secret, other.api_token)
    assert.deepEqual(
      [elsewhere.status, elsewhere.body],
      [401, { type: 'authentication_error', attr: null, ...refused }],
    )
    await front.api('DELETE', projectAt(own.id))
    assert.equal((await definitionsWith(front, secret, own.api_token)).status, 401)
    assert.equal((await definitionsWith(front, secret, other.api_token)).status, 401)
  })

  it('give no access to the private API, flags or capture', async () => {
    const { id } = await newProject('narrow')
    const { secret } = await rotate(id)
    const headers = { authorization: `Bearer ${secret}` }
    for (const path of [projectAt(id), `${projectAt(id)}feature_flags/`, '/api/users/@me/'])
      assert.equal((await fetch(front.url + path, { headers })).status, 401, path)
    for (const path of ['/decide?v=3', '/capture/']) {
      const body = JSON.stringify({ api_key: secret, distinct_id: 'ada', event: 'e' })
      assert.equal((await fetch(front.url + path, { method: 'POST', body })).status, 401, path)
    }
  })

  it('cause, when wrong, another error message than wrong or missing personal keys', async () => {
    const detailOf = async (secret: string | null) => {
      const { status, body } = await definitionsWith(front, secret)
      return `${status} ${body.code} ${body.detail}`
    }
    const failed = '401 authentication_failed'
    assert.equal(await detailOf(`phs_${'0'.repeat(43)}`), `${failed} Secret API token is invalid.`)
    assert.equal(await detailOf(`phs_${'0'.repeat(4_000)}`), `${failed} Secret API token is invalid.`)
    assert.equal(await detailOf('phs_'), `${failed} Secret API token is invalid.`)
    assert.equal(await detailOf('phx_nobody'), `${failed} Personal API key is invalid.`)
    assert.equal(await detailOf(null), '401 not_authenticated Authentication credentials were not provided.')
    const { value } = await front.api<{ value: string }>('POST', '/api/personal_api_keys/', {
      ...{ label: 'persons', scopes: ['person:read'] },
    })
    const scopes = 'Personal API key lacks required scopes (feature_flag:read or feature_flag:write).'
    assert.equal(await detailOf(value), `403 permission_denied ${scopes}`)
    const unknown = await definitionsWith(front, testPersonalKey, 'phc_nobody')
    assert.equal(unknown.status, 401)
    assert.match(unknown.body.detail!, /^The provided API key is invalid or has expired\./)
  })

  it('do not make a public key valid again after its reset', async () => {
    const { id, api_token: former } = await newProject('reset')
    const { secret } = await rotate(id)
    const { api_token: now } = await front.api<ProjectJson>('PATCH', `${projectAt(id)}reset_token/`)
    assert.match(now, /^phc_[0-9A-Za-z]{43}$/)
    const decide = async (api_key: string) => {
      const body = JSON.stringify({ api_key, distinct_id: 'ada' })
      return (await fetch(`${front.url}/decide?v=3`, { method: 'POST', body })).status
    }
    assert.deepEqual([await decide(former), await decide(now)], [401, 200])
    assert.equal((await definitionsWith(front, secret, former)).status, 401)
    assert.equal((await definitionsWith(front, secret, now)).status, 200)
  })
})

it('deleting, rotating or resetting a key on one front takes effect on other fronts within a second', async t => {
  const settings = { PENNON_DATA: tempDir(t) }
  const [first, second] = [await startFront(settings), await startFront(settings)]
  t.after(() => Promise.all([first.close(), second.close()]))
  const soon = { what: 'the other front to follow' }
  const given = { label: 'short-lived', scopes: ['feature_flag:read'] }
  const made = await first.api<{ id: string; value: string }>('POST', '/api/personal_api_keys/', given)
  const flagsWith = async ({ url }: { url: string }) => {
    const headers = { authorization: `Bearer ${made.value}` }
    const response = await fetch(`${url}/api/projects/@current/feature_flags/`, { headers })
    await response.arrayBuffer()
    return response.status
  }
  assert.deepEqual([await flagsWith(first), await flagsWith(second)], [200, 200])
  await first.api('DELETE', `/api/personal_api_keys/${made.id}/`)
  assert.equal(await flagsWith(first), 401)
  await eventually(async () => (await flagsWith(second)) === 401, soon)

  const rotate = async () =>
    (await first.api<ProjectJson>('PATCH', '/api/projects/@current/rotate_secret_token/')).secret_api_token!
  const former = await rotate()
  await eventually(async () => (await definitionsWith(second, former)).status === 200, soon)
  await rotate()
  await first.api('PATCH', '/api/projects/@current/delete_secret_token_backup/')
  assert.equal((await definitionsWith(first, former)).status, 401)
  await eventually(async () => (await definitionsWith(second, former)).status === 401, soon)
  await first.api('PATCH', '/api/projects/@current/reset_token/')
  assert.equal((await definitionsWith(first, testPersonalKey)).status, 401)
  await eventually(async () => (await definitionsWith(second, testPersonalKey)).status === 401, soon)
})

it('creating and deleting secret keys waits until the change is served', async t => {
  const api = await startManagement(t)
  for (const action of ['rotate_secret_token', 'delete_secret_token_backup', 'reset_token']) {
    const path = `/api/projects/1/${action}/`
    const before = api.served.length
    await api.patch(path)
    assert.equal(api.served.length, before + 1, action)
    assert.equal((await api.call('PATCH', `/api/projects/9/${action}/`)).status, 404, action)
  }
  const stored = JSON.stringify(await api.management.listSecretKeys([1]))
  assert.doesNotMatch(stored, /phs_[0-9A-Za-z]{5}/)
})
