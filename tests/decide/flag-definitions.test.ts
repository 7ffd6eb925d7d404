import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startFront } from '../support/front.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'

// Definitions for SDKs with local evaluation. Source: docs/wire/evaluation.md 7.1; docs/wire/clients.md 7.

const paths = [
  '/flags/definitions',
  '/flags/definitions/',
  '/api/feature_flag/local_evaluation',
  '/api/feature_flag/local_evaluation/',
]

const front = startedForTests(startFront)

function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(front.url + path, {
    method,
    redirect: 'manual',
    headers: { authorization: `Bearer ${testPersonalKey}`, ...headers },
  })
}

// biome-ignore lint/suspicious/noExplicitAny: reads parts of the answer
async function definitions(): Promise<any> {
  return (await ask(`${paths[0]}?token=${testProjectKey}&send_cohorts`)).json()
}

async function createFlag(body: object): Promise<{ id: number }> {
  return front.api('POST', '/api/projects/@current/feature_flags/', body)
}

describe('definitions for local evaluation', () => {
  it('are the same at every path, with any trailing slash and any send_cohorts', async () => {
    const texts = new Set<string>()
    for (const path of paths) {
      for (const query of [
        `token=${testProjectKey}`,
        `token=${testProjectKey}&send_cohorts`,
        `send_cohorts=true&token=${testProjectKey}`,
      ]) {
        const response = await ask(`${path}?${query}`)
        assert.equal(response.status, 200, `${path}?${query}`)
        assert.equal(response.headers.get('content-type'), 'application/json')
        assert.equal(response.headers.get('cache-control'), 'private, must-revalidate')
        texts.add(await response.text())
      }
    }
    const byHeader = await ask(`${paths[1]}?send_cohorts`, { 'x-posthog-project-api-key': testProjectKey })
    texts.add(await byHeader.text())
    assert.equal(texts.size, 1)
  })

  it('have arrays, integer percentages and payloads as text, as typed clients require', async () => {
    const body =
      '{"key":"typed","filters":{"groups":[{"properties":[{"key":"plan","type":"person","value":["pro"],"operator":"exact"}],' +
      '"rollout_percentage":100.0,"description":"kept"},{"rollout_percentage":33.3}],' +
      '"multivariate":{"variants":[{"key":"a","rollout_percentage":50.0},{"key":"b","rollout_percentage":50}]},' +
      '"payloads":{"a":{"n":1.0},"b":"\\"text\\""}}}'
    const created = await fetch(`${front.url}/api/projects/@current/feature_flags/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testPersonalKey}` },
      body,
    })
    assert.equal(created.status, 201, await created.clone().text())
    const { id } = (await created.json()) as { id: number }
    const response = await ask(`${paths[0]}?token=${testProjectKey}`)
    const text = await response.text()
    const flags = JSON.parse(text).flags as { key: string }[]
    assert.deepEqual(
      flags.find(flag => flag.key === 'typed'),
      {
        id,
        team_id: 1,
        name: '',
        key: 'typed',
        filters: {
          groups: [
            {
              properties: [{ key: 'plan', type: 'person', value: ['pro'], operator: 'exact' }],
              rollout_percentage: 100,
              description: 'kept',
            },
            { rollout_percentage: 33.3, properties: [] },
          ],
          multivariate: {
            variants: [
              { key: 'a', rollout_percentage: 50 },
              { key: 'b', rollout_percentage: 50 },
            ],
          },
          payloads: { a: '{"n":1.0}', b: '"text"' },
        },
        deleted: false,
        active: true,
        ensure_experience_continuity: false,
        version: 1,
        evaluation_runtime: 'all',
        evaluation_contexts: [],
        bucketing_identifier: null,
        has_experiment: false,
      },
    )
    assert.doesNotMatch(text, /_percentage":\d+\.0[,}]/, 'a percentage has a fraction of zero')
  })

  it('are sorted by flag key, and include inactive flags, but no deleted, encrypted or unreadable ones', async () => {
    await createFlag({ key: 'z-last' })
    await createFlag({ key: 'inactive', active: false })
    await createFlag({ key: 'encrypted', has_encrypted_payloads: true })
    const gone = await createFlag({ key: 'gone' })
    await front.api('PATCH', `/api/projects/@current/feature_flags/${gone.id}/`, { deleted: true })
    await front.api('POST', '/api/projects/@current/feature_flags/?skip_validation=true', {
      key: 'unreadable',
      filters: { groups: 'none' },
    })
    const { flags, cohorts, group_type_mapping, property_matching_version } = await definitions()
    const keys = flags.map((flag: { key: string }) => flag.key)
    assert.deepEqual(keys, keys.toSorted())
    assert.ok(keys.includes('z-last') && keys.includes('inactive'))
    for (const absent of ['encrypted', 'gone', 'unreadable']) assert.ok(!keys.includes(absent), absent)
    assert.deepEqual(cohorts, {})
    assert.deepEqual(group_type_mapping, {})
    assert.equal(property_matching_version, 1)
  })

  it('refer to a flag dependency by its key, with the chain of flags to evaluate first', async () => {
    const dependency = (id: number | string) => ({
      groups: [{ properties: [{ key: String(id), type: 'flag', value: true, operator: 'flag_evaluates_to' }] }],
    })
    const base = await createFlag({ key: 'base' })
    const middle = await createFlag({ key: 'middle', filters: dependency(base.id) })
    await createFlag({ key: 'top', filters: dependency(middle.id) })
    await front.api('POST', '/api/projects/@current/feature_flags/?skip_validation=true', {
      key: 'dangling',
      filters: dependency(999_999),
    })
    const { flags } = await definitions()
    const tested = (key: string) =>
      flags.find((flag: { key: string }) => flag.key === key).filters.groups[0].properties[0]
    assert.equal(tested('middle').key, 'base')
    assert.deepEqual(tested('middle').dependency_chain, ['base'])
    assert.equal(tested('top').key, 'middle')
    assert.deepEqual(tested('top').dependency_chain, ['base', 'middle'])
    assert.deepEqual(tested('dangling').dependency_chain, [])
  })

  it('contain the cohorts reached by flags, even by inactive ones, with conditions on flags written as in flags', async () => {
    const createCohort = async (body: object, skipValidation = false) => {
      const query = skipValidation ? '?skip_validation=true' : ''
      return (await front.api<{ id: number }>('POST', `/api/projects/@current/cohorts/${query}`, body)).id
    }
    const described = (type: string, ...values: object[]) => ({ properties: { type, values } })
    const inCohort = (id: number) => ({ key: 'id', type: 'cohort', value: id })
    const asks = (id: number) => ({ key: String(id), type: 'flag', value: true, operator: 'flag_evaluates_to' })
    const plan = { key: 'plan', type: 'person', value: 'pro', operator: 'exact' }
    const onlyFor = (id: number) => ({ groups: [{ properties: [inCohort(id)] }] })

    const tested = await createFlag({ key: 'tested-by-cohort' })
    const inner = await createCohort({
      name: 'inner',
      filters: described('OR', plan, { ...asks(tested.id), negation: true }),
    })
    const listed = await createCohort({ name: 'listed', is_static: true })
    const outer = await createCohort({
      name: 'outer',
      filters: described('AND', { type: 'OR', values: [inCohort(inner), inCohort(listed)] }),
    })
    const unused = await createCohort({ name: 'unused', filters: described('OR', plan) })
    const gone = await createCohort({ name: 'gone', filters: described('OR', asks(999_999)) }, true)
    const unreadable = await createCohort({ name: 'unreadable', filters: { properties: 'x' } }, true)
    const empty = await createCohort({ name: 'empty', filters: {} }, true)
    const circle = await createCohort({ name: 'circle', filters: {} }, true)
    await front.api('PATCH', `/api/projects/@current/cohorts/${circle}/?skip_validation=true`, {
      filters: described('OR', inCohort(circle)),
    })

    const inOuter = await createFlag({ key: 'in-outer', filters: onlyFor(outer) })
    await createFlag({ key: 'behind-cohort', filters: { groups: [{ properties: [asks(inOuter.id)] }] } })
    await createFlag({ key: 'off-in-gone', active: false, filters: onlyFor(gone) })
    for (const id of [unreadable, empty, circle, 888_888])
      await front.api('POST', '/api/projects/@current/feature_flags/?skip_validation=true', {
        key: `in-odd-${id}`,
        filters: onlyFor(id),
      })

    const { flags, cohorts } = await definitions()
    assert.deepEqual(cohorts, {
      [inner]: {
        type: 'OR',
        values: [
          plan,
          { ...asks(tested.id), key: 'tested-by-cohort', negation: true, dependency_chain: ['tested-by-cohort'] },
        ],
      },
      [outer]: { type: 'AND', values: [{ type: 'OR', values: [inCohort(inner), inCohort(listed)] }] },
      [gone]: { type: 'OR', values: [{ ...asks(999_999), dependency_chain: [] }] },
    })
    assert.equal(cohorts[unused], undefined)
    const behind = flags.find((flag: { key: string }) => flag.key === 'behind-cohort').filters.groups[0].properties[0]
    assert.deepEqual(behind.dependency_chain, ['tested-by-cohort', 'in-outer'])
  })

  it('answer 304 to their own entity tag, weak, strong or unquoted, and 200 after an edit', async () => {
    const path = `${paths[0]}?token=${testProjectKey}`
    const etag = (await ask(path)).headers.get('etag')!
    assert.match(etag, /^W\/"[\w-]{22}"$/)
    for (const sent of [etag, etag.slice(2), etag.slice(3, -1), `"other", ${etag}`, '*']) {
      const response = await ask(path, { 'if-none-match': sent })
      assert.equal(response.status, 304, sent)
      assert.equal(response.headers.get('etag'), etag)
      assert.equal(await response.text(), '')
    }
    assert.equal((await ask(path, { 'if-none-match': 'W/"other"' })).status, 200)
    await createFlag({ key: 'edited-since' })
    const edited = await ask(path, { 'if-none-match': etag })
    assert.equal(edited.status, 200)
    assert.notEqual(edited.headers.get('etag'), etag)
  })

  it('require a personal key with read access to the project’s flags, and a project key', async () => {
    const path = `${paths[0]}?token=${testProjectKey}`
    const statusOf = async (query: string, authorization: string) => {
      const response = await ask(query, { authorization })
      const body = (await response.json()) as { type: string; code: string; attr: string | null }
      return `${response.status} ${body.type} ${body.code}`
    }
    assert.equal(await statusOf(path, ''), '401 authentication_error not_authenticated')
    assert.equal(await statusOf(path, 'Bearer phx_unknown'), '401 authentication_error authentication_failed')
    assert.equal(await statusOf(path, `Bearer ${testProjectKey}`), '401 authentication_error authentication_failed')
    const all = `Bearer ${testPersonalKey}`
    assert.equal(await statusOf(paths[0]!, all), '400 validation_error required')
    assert.equal(await statusOf(`${paths[0]}?token=phc_nobody`, all), '401 authentication_error authentication_failed')
    const keyWith = async (scopes: string[], scoped_teams: number[] = []) => {
      const { value } = await front.api<{ value: string }>('POST', '/api/personal_api_keys/', {
        label: 'k',
        scopes,
        scoped_teams,
      })
      return `Bearer ${value}`
    }
    assert.equal(await statusOf(path, await keyWith(['person:read'])), '403 authentication_error permission_denied')
    const other = await front.api<{ id: number }>('POST', '/api/projects/', { name: 'other' })
    const limited = await keyWith(['feature_flag:read'], [other.id])
    assert.equal(await statusOf(path, limited), '403 authentication_error permission_denied')
    const reader = await ask(path, { authorization: await keyWith(['feature_flag:write']) })
    assert.equal(reader.status, 200)
  })

  it('reject a deleted key at once, even one used before', async () => {
    const path = `${paths[0]}?token=${testProjectKey}`
    const { id, value } = await front.api<{ id: string; value: string }>('POST', '/api/personal_api_keys/', {
      label: 'short-lived',
      scopes: ['feature_flag:read'],
    })
    const authorization = `Bearer ${value}`
    const etag = (await ask(path, { authorization })).headers.get('etag')!
    for (let count = 0; count < 3; count++)
      assert.equal((await ask(path, { authorization, 'if-none-match': etag })).status, 304)
    await front.api('DELETE', `/api/personal_api_keys/${id}/`)
    for (let count = 0; count < 2; count++)
      assert.equal((await ask(path, { authorization, 'if-none-match': etag })).status, 401)
  })

  it('accept the personal key in the URL as old SDKs send it, and never with CORS', async () => {
    const response = await fetch(
      `${front.url}${paths[2]}?token=${testProjectKey}&personal_api_key=${testPersonalKey}`,
      {
        headers: { origin: 'https://page.example' },
      },
    )
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('access-control-allow-origin'), null)
  })

  it('answer HEAD and OPTIONS, and 405 to other methods', async () => {
    const path = `${paths[0]}?token=${testProjectKey}`
    assert.equal((await ask(path, {}, 'HEAD')).status, 200)
    const options = await ask(path, {}, 'OPTIONS')
    assert.equal(options.status, 204)
    assert.equal(options.headers.get('allow'), 'GET, OPTIONS, HEAD')
    assert.equal((await ask(path, {}, 'POST')).status, 405)
  })
})

describe('the list of flags for SDKs older than 2022', () => {
  const ask = (path: string, authorization: string) =>
    fetch(front.url + path, { redirect: 'manual', headers: { authorization } })

  it('contains the key and name of every existing flag, and leaves the evaluation to /decide/', async () => {
    await createFlag({ key: 'a-listed', name: 'Listed', filters: { groups: [{ rollout_percentage: 30 }] } })
    await createFlag({ key: 'b-listed', active: false })
    const { id } = await createFlag({ key: 'c-gone' })
    await front.api('DELETE', `/api/projects/@current/feature_flags/${id}/`)
    for (const path of ['/api/feature_flag/', '/api/feature_flag']) {
      const response = await ask(`${path}?token=${testProjectKey}`, `Bearer ${testPersonalKey}`)
      assert.equal(response.status, 200)
      const { results, count, next } = (await response.json()) as {
        results: { id: number; key: string }[]
        count: number
        next: null
      }
      assert.deepEqual([count, next], [results.length, null])
      const listed = results.find(({ key }) => key === 'a-listed')!
      const { id: _id, ...rest } = listed
      const server = { is_simple_flag: false, rollout_percentage: null }
      assert.deepEqual(rest, { key: 'a-listed', name: 'Listed', active: true, ...server })
      assert.deepEqual(
        results.map(({ key }) => key).filter(key => /^[abc]-(listed|gone)$/.test(key)),
        ['a-listed', 'b-listed'],
      )
    }
  })

  it('requires a key with read access to flags, and a project', async () => {
    const path = '/api/feature_flag/'
    assert.equal((await ask(`${path}?token=${testProjectKey}`, `Bearer ${testProjectKey}`)).status, 401)
    assert.equal((await ask(path, `Bearer ${testPersonalKey}`)).status, 400)
    assert.equal((await ask(`${path}?token=phc_nobody`, `Bearer ${testPersonalKey}`)).status, 401)
    const inQuery = `${path}?token=${testProjectKey}&personal_api_key=${testPersonalKey}`
    assert.equal((await fetch(front.url + inQuery)).status, 401)
  })
})
