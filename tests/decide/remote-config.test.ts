// Payloads of remote configuration, as servers request them. Source: docs/wire/evaluation.md 7.3.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type RunningFront, startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'

let front: RunningFront
let secretKey: string
let other: { id: number; api_token: string; secret: string }

before(async () => {
  front = await startFront()
  secretKey = await secretKeyOf(1)
  const { id, api_token } = await front.api<{ id: number; api_token: string }>('POST', '/api/projects/', { name: 'o' })
  other = { id, api_token, secret: await secretKeyOf(id) }
})
after(() => front.close())

async function secretKeyOf(projectId: number): Promise<string> {
  const path = `/api/projects/${projectId}/rotate_secret_token/`
  return (await front.api<{ secret_api_token: string }>('PATCH', path)).secret_api_token
}

async function personalKey(scopes: string[], scoped_teams: number[] = []): Promise<string> {
  const body = { label: 'k', scopes, scoped_teams }
  return (await front.api<{ value: string }>('POST', '/api/personal_api_keys/', body)).value
}

function addFlag(key: string, payloads: object | undefined, more: object = {}, projectId = 1): Promise<{ id: number }> {
  return front.api('POST', `/api/projects/${projectId}/feature_flags/`, {
    key,
    is_remote_configuration: true,
    filters: { groups: [{ rollout_percentage: 100 }], ...(payloads && { payloads }) },
    ...more,
  })
}

async function ask(path: string, key: string | null = testPersonalKey, init: RequestInit = {}) {
  const response = await fetch(`${front.url}/api/projects/${path}`, {
    redirect: 'manual',
    ...init,
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
  })
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
}

describe('remote configuration flags', () => {
  it('do not include version 2 flags, even those stored as remote configuration', async () => {
    const filters = { version: 2, return_type: 'boolean', default_value: true, rules: [] }
    const body = { key: 'typed', is_remote_configuration: true, filters }
    await front.api('POST', '/api/projects/1/feature_flags/?skip_validation=true', body)
    assert.equal((await ask('1/feature_flags/typed/remote_config')).status, 404)
  })

  it('have their payload text returned as a JSON string, at every path and for either kind of key', async () => {
    const { id } = await addFlag('config', { true: '{"a": 1}' })
    const paths = ['@current', '1'].flatMap(project =>
      ['config', String(id)].flatMap(flag =>
        ['', '/', `?token=${testProjectKey}`, `/?token=${testProjectKey}`, '?token=', `?api_key=${testProjectKey}`].map(
          end => `${project}/feature_flags/${flag}/remote_config${end}`,
        ),
      ),
    )
    for (const path of paths)
      for (const key of [testPersonalKey, secretKey]) {
        const answer = await ask(path, key)
        assert.deepEqual(answer, { status: 200, type: 'application/json', text: '"{\\"a\\": 1}"' }, path)
      }
    const environment = await fetch(`${front.url}/api/environments/1/feature_flags/config/remote_config/`, {
      headers: { authorization: `Bearer ${secretKey}` },
    })
    assert.equal(await environment.json(), '{"a": 1}')
  })

  it('return text for payloads of any JSON type, and an empty body without a payload', async () => {
    await addFlag('object', { true: { n: 1.5, list: [] } })
    await addFlag('number', { true: 7 })
    await addFlag('text', { true: 'plain' })
    await addFlag('null', { true: null })
    await addFlag('empty', { true: '' })
    await addFlag('variant-only', { control: '1' })
    await addFlag('none', undefined)
    const textOf = async (key: string) => {
      const { status, text } = await ask(`1/feature_flags/${key}/remote_config`)
      return [status, text]
    }
    assert.deepEqual(await textOf('object'), [200, '"{\\"n\\":1.5,\\"list\\":[]}"'])
    assert.deepEqual(await textOf('number'), [200, '"7"'])
    assert.deepEqual(await textOf('text'), [200, '"plain"'])
    for (const key of ['null', 'empty', 'variant-only', 'none']) assert.deepEqual(await textOf(key), [200, ''], key)
  })

  it('return an edited payload at once, even while the flag is inactive', async () => {
    const { id } = await addFlag('edited', { true: '1' }, { active: false })
    assert.equal((await ask('1/feature_flags/edited/remote_config')).text, '"1"')
    await front.api('PATCH', `/api/projects/1/feature_flags/${id}/`, {
      filters: { groups: [], payloads: { true: '2' } },
    })
    assert.equal((await ask('1/feature_flags/edited/remote_config')).text, '"2"')
  })

  it('give 404 for missing flags and projects, and for flags that are not remote configuration', async () => {
    await addFlag('ordinary', { true: '1' }, { is_remote_configuration: false })
    const { id } = await addFlag('gone', { true: '1' })
    await front.api('DELETE', `/api/projects/1/feature_flags/${id}/`)
    await addFlag('of-the-other', { true: '1' }, {}, other.id)
    const flags = ['ordinary', 'gone', String(id), 'nobody', '99999999999999999999', 'of-the-other']
    const paths = [
      ...flags.map(flag => `1/feature_flags/${flag}/remote_config`),
      '999/feature_flags/config/remote_config',
      '99999999999999999999/feature_flags/config/remote_config',
      'nowhere/feature_flags/config/remote_config',
    ]
    for (const path of paths)
      for (const key of [testPersonalKey, secretKey]) {
        const { status, text } = await ask(path, key)
        assert.equal(status, 404, path)
        assert.equal(JSON.parse(text).code, 'not_found')
        assert.equal(/"is_remote_configuration": true/.test(JSON.parse(text).detail), path.includes('ordinary'))
      }
  })

  it('give 403 for a key of another project, and 401 without a known key', async () => {
    await addFlag('guarded', { true: '"not for strangers"' })
    const path = '1/feature_flags/guarded/remote_config'
    const codeOf = async (where: string, key: string | null) => {
      const { status, text } = await ask(where, key)
      assert.doesNotMatch(text, /strangers/)
      const { code, detail } = JSON.parse(text)
      return `${status} ${code}: ${detail}`
    }
    const failed = '401 authentication_failed:'
    assert.match(await codeOf(path, other.secret), /^403 permission_denied/)
    const withToken = `@current/feature_flags/guarded/remote_config?token=${testProjectKey}`
    assert.match(await codeOf(withToken, other.secret), /^403 permission_denied/)
    assert.match(await codeOf(path, await personalKey(['feature_flag:read'], [other.id])), /^403 permission_denied/)
    assert.equal(
      await codeOf(path, await personalKey(['person:read'])),
      '403 permission_denied: Personal API key lacks required scopes (feature_flag:read or feature_flag:write).',
    )
    assert.equal(await codeOf(path, null), '401 not_authenticated: Authentication credentials were not provided.')
    assert.equal(await codeOf(path, 'phx_nobody'), `${failed} Personal API key is invalid.`)
    assert.equal(await codeOf(path, testProjectKey), `${failed} Personal API key is invalid.`)
    assert.equal(await codeOf(path, `phs_${'1'.repeat(43)}`), `${failed} Secret API token is invalid.`)
    assert.match(await codeOf(`${path}?token=phc_nobody`, testPersonalKey), /^401 authentication_failed: The provided/)
    for (const name of ['personal_api_key', 'key'])
      assert.match(
        await codeOf(`${path}?${name}=${testPersonalKey}`, testPersonalKey),
        /^401 not_authenticated: Secret keys/,
      )
  })

  it('requested for @current are those of the key’s project, unless a token names another project', async () => {
    await addFlag('where', { true: '"first"' })
    await addFlag('where', { true: '"other"' }, {}, other.id)
    const textOf = async (end: string, key: string) =>
      (await ask(`@current/feature_flags/where/remote_config${end}`, key)).text
    assert.equal(await textOf('', testPersonalKey), JSON.stringify('"first"'))
    assert.equal(await textOf('', other.secret), JSON.stringify('"other"'))
    assert.equal(await textOf('', await personalKey(['feature_flag:read'], [other.id])), JSON.stringify('"other"'))
    assert.equal(await textOf(`?token=${other.api_token}`, testPersonalKey), JSON.stringify('"other"'))
  })

  it('can be requested with HEAD as with GET, but with no other method', async () => {
    await addFlag('head', { true: '1' })
    const path = '1/feature_flags/head/remote_config'
    assert.deepEqual(await ask(path, testPersonalKey, { method: 'HEAD' }), {
      ...{ status: 200, type: 'application/json', text: '' },
    })
    assert.equal((await ask(path, testPersonalKey, { method: 'POST', body: '{}' })).status, 405)
  })
})
