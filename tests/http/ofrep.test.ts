import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { computeChangeTag } from '#wire/flags/change-events.ts'
import { type DecideServerOptions, emptySubjects } from '../support/decide-server.ts'
import { startFront } from '../support/front.ts'
import { bulkPath, everybody, flags, halves, type Item, proOnly, startOfrep } from '../support/ofrep-server.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'

// OpenFeature's remote evaluation, over real sockets. Source: docs/wire/ofrep.md.

describe('an OFREP answer', () => {
  it('has the value, the reason, the variant and flat metadata, the same for one flag as for all', async t => {
    const { one, all } = await startOfrep(t)
    const expected = {
      on: {
        ...{ key: 'on', value: true, reason: 'STATIC', variant: 'true' },
        metadata: { id: 1, version: 1, reason: 'condition_match', payload: '{"a":1}' },
      },
      off: {
        ...{ key: 'off', value: false, reason: 'SPLIT', variant: 'false' },
        metadata: { id: 2, version: 3, reason: 'out_of_rollout_bound' },
      },
      pro: {
        ...{ key: 'pro', value: false, reason: 'TARGETING_MATCH', variant: 'false' },
        metadata: { id: 3, version: 1, reason: 'no_condition_match' },
      },
      fixed: {
        ...{ key: 'fixed', value: 'b', reason: 'STATIC', variant: 'b' },
        metadata: { id: 4, version: 1, reason: 'condition_match', payload: '"hello"' },
      },
      inactive: {
        ...{ key: 'inactive', value: false, reason: 'DISABLED', variant: 'false' },
        metadata: { id: 5, version: 9 },
      },
    }
    for (const [key, item] of Object.entries(expected)) assert.deepEqual(await one(key), item)
    assert.deepEqual(Object.fromEntries(await all()), expected)
  })

  it('has the reason for the value', async t => {
    const { all } = await startOfrep(t, {
      groupTypes: { 0: 'company' },
      flags: [
        { id: 1, key: 'matched', filters: { groups: [proOnly] } },
        { id: 2, key: 'second-set', filters: { groups: [proOnly, everybody] } },
        { id: 3, key: 'rolled-out', filters: { groups: [{ ...everybody, rollout_percentage: 99.99 }] } },
        { id: 4, key: 'split', filters: { groups: [everybody], multivariate: halves } },
        { id: 5, key: 'no-sets', filters: { groups: [] } },
        { id: 6, key: 'group', filters: { groups: [everybody], aggregation_group_type_index: 0 } },
        { id: 7, key: 'enrolment', filters: { groups: [everybody], feature_enrollment: true } },
        { id: 8, key: 'held-out', filters: { groups: [everybody], holdout: { id: 1, exclusion_percentage: 100 } } },
        {
          id: 9,
          key: 'orphan',
          filters: {
            groups: [{ properties: [{ key: '99', type: 'flag', value: true, operator: 'flag_evaluates_to' }] }],
          },
        },
      ],
    })
    const reasons = async (context: object) => {
      const items = await all({ targetingKey: 'u', ...context })
      return Object.fromEntries([...items].map(([key, { value, reason }]) => [key, `${value} ${reason}`]))
    }
    const someone = await reasons({})
    const { split, ...others } = someone
    assert.match(split!, /^[ab] SPLIT$/)
    assert.deepEqual(others, {
      matched: 'false TARGETING_MATCH',
      'second-set': 'true TARGETING_MATCH',
      'rolled-out': 'true SPLIT',
      'no-sets': 'false STATIC',
      group: 'false TARGETING_MATCH',
      enrolment: 'true TARGETING_MATCH',
      'held-out': 'holdout-1 SPLIT',
      orphan: 'false UNKNOWN',
    })
    const known = await reasons({ plan: 'pro', groups: { company: 'acme' }, '$feature_enrollment/enrolment': 'false' })
    assert.equal(known.matched, 'true TARGETING_MATCH')
    assert.equal(known.group, 'true TARGETING_MATCH')
    assert.equal(known.enrolment, 'false TARGETING_MATCH')
  })

  it('counts as one flag request, for one flag or all, while a rejection is not counted', async t => {
    const { one, all, askWith, counted } = await startOfrep(t)
    await one('on')
    await one('nowhere')
    await all()
    await askWith(bulkPath, {})
    await askWith(bulkPath, { targetingKey: 'u' }, { authorization: 'Bearer phc_else' })
    assert.deepEqual(counted, [1, 1, 1])
  })

  it('reports an error for one broken flag without affecting other flags', async t => {
    const down = () => Promise.reject(new Error('down'))
    const { all, askWith } = await startOfrep(t, {
      subjects: { ...emptySubjects, findPerson: down },
      flags: [...flags, { id: 7, key: 'loop', filters: { groups: [selfTest] } }],
    })
    const items = await all()
    assert.equal(items.get('on')?.value, true)
    assert.equal(items.get('inactive')?.reason, 'DISABLED')
    for (const key of ['pro', 'loop']) {
      const { value, errorCode, errorDetails } = items.get(key)!
      assert.deepEqual([value, errorCode], [undefined, 'GENERAL'], key)
      assert.ok(errorDetails)
      const alone = await askWith(`${bulkPath}/${key}`, { targetingKey: 'u' })
      assert.equal(alone.status, 500)
      assert.deepEqual(alone.json, { key, errorCode, errorDetails })
    }
    assert.equal((await all({ targetingKey: 'u', plan: 'pro' })).get('pro')?.value, true)
  })
})

/** A set for flag 7, which then depends on itself. */
const selfTest = { properties: [{ key: '7', type: 'flag', value: true, operator: 'flag_evaluates_to' }] }

describe('an OFREP context', () => {
  it('is mapped to distinct id, person properties, groups and group properties, in either spelling', async t => {
    const asked: string[] = []
    const gold = { groups: [{ properties: [{ key: 'tier', type: 'group', group_type_index: 0, value: 'gold' }] }] }
    const { one } = await startOfrep(t, {
      groupTypes: { 0: 'company' },
      subjects: {
        ...emptySubjects,
        findPerson: (_projectId, distinctId) => {
          asked.push(distinctId)
          return null
        },
      },
      flags: [
        { id: 1, key: 'pro', filters: { groups: [proOnly] } },
        { id: 2, key: 'gold', filters: { ...gold, aggregation_group_type_index: 0 } },
        {
          id: 3,
          key: 'on-groups',
          filters: { groups: [{ properties: [{ key: 'groups', type: 'person', value: 'x' }] }] },
        },
        {
          id: 4,
          key: 'old-enough',
          filters: { groups: [{ properties: [{ key: 'age', type: 'person', value: '18', operator: 'gte' }] }] },
        },
      ],
    })
    assert.equal((await one('pro', { targetingKey: 'ada' })).value, false)
    assert.deepEqual(asked, ['ada'])
    assert.equal((await one('pro', { targetingKey: 'ada', plan: 'pro' })).value, true)
    const groups = { company: 'acme' }
    const properties = { company: { tier: 'gold' } }
    assert.equal((await one('gold', { targetingKey: 'ada', groups, groupProperties: properties })).value, true)
    assert.equal((await one('gold', { targetingKey: 'ada', groups, group_properties: properties })).value, true)
    assert.equal((await one('gold', { targetingKey: 'ada', groups })).value, false)
    assert.equal((await one('on-groups', { targetingKey: 'ada', groups: 'x' })).value, true)
    assert.equal((await one('old-enough', { targetingKey: 'ada', age: 20 })).value, true)
    assert.equal((await one('old-enough', { targetingKey: 'ada', age: 9 })).value, false)
  })

  it('has the server runtime for one flag and the client runtime for all, unless the caller is recognized', async t => {
    const { all, one } = await startOfrep(t, {
      flags: ['client', 'server'].flatMap((runtime, index): JsonObject[] => [
        { id: 2 * index + 1, key: `${runtime}-flag`, evaluation_runtime: runtime, filters: { groups: [everybody] } },
        { id: 2 * index + 2, key: `${runtime}-off`, evaluation_runtime: runtime, active: false },
      ]),
    })
    const seenBy = async (headers: Record<string, string>) => {
      const bulk = [...(await all({ targetingKey: 'u' }, headers)).keys()]
      const alone = []
      for (const key of ['client-flag', 'client-off', 'server-flag', 'server-off'])
        if ((await one(key, { targetingKey: 'u' }, headers)).errorCode === undefined) alone.push(key)
      return { bulk, alone }
    }
    const [client, server] = ['client', 'server'].map(runtime => [`${runtime}-flag`, `${runtime}-off`])
    assert.deepEqual(await seenBy({ 'user-agent': 'node' }), { bulk: client, alone: server })
    assert.deepEqual(await seenBy({ 'user-agent': 'Mozilla/5.0' }), { bulk: client, alone: client })
    assert.deepEqual(await seenBy({ 'user-agent': 'curl/8' }), { bulk: server, alone: server })
  })
})

describe('the entity tag of an answer with all flags', () => {
  it('changes only with the context, the definitions and the stored person', async t => {
    let stored: { properties: { plan: string } } | null = null
    const { askWith, serve } = await startOfrep(t, {
      subjects: {
        ...emptySubjects,
        findPerson: () =>
          stored === null ? null : { id: 1, uuid: 'p', createdAtMs: 0, isIdentified: true, ...stored },
      },
    } as Partial<DecideServerOptions>)
    const tagOf = async (context: object) =>
      (await askWith(bulkPath, { targetingKey: 'u', ...context })).headers.get('etag')
    const first = await tagOf({})
    assert.match(first!, /^"[\w-]{22}"$/)
    assert.equal(await tagOf({ unread: 1 }), first)
    assert.notEqual(await tagOf({ plan: 'pro' }), first)
    for (const sent of [first!, `W/${first}`, `"other", ${first}`, '*']) {
      const unchanged = await askWith(bulkPath, { targetingKey: 'u' }, { 'if-none-match': sent })
      assert.deepEqual([unchanged.status, unchanged.text, unchanged.headers.get('etag')], [304, '', first], sent)
    }
    stored = { properties: { plan: 'pro' } }
    assert.equal((await askWith(bulkPath, { targetingKey: 'u' }, { 'if-none-match': first! })).status, 200)
    stored = null
    serve({ flags: flags.slice(1) })
    assert.equal((await askWith(bulkPath, { targetingKey: 'u' }, { 'if-none-match': first! })).status, 200)
  })
})

describe('the change stream in an OFREP answer', () => {
  it('is listed with its URL, also behind a path prefix, while the stream accepts more clients', async t => {
    const { askWith } = await startOfrep(t, { hasCapacity: true })
    const streams = async (headers: Record<string, string> = {}) =>
      (await askWith(bulkPath, { targetingKey: 'u' }, headers)).json.eventStreams
    const at = (requestUri: string) => [{ type: 'sse', endpoint: { requestUri }, inactivityDelaySec: 120 }]
    assert.deepEqual(await streams(), at('/ofrep/v1/events?token=phc_test'))
    assert.deepEqual(await streams({ 'x-forwarded-prefix': '/ingest' }), at('/ingest/ofrep/v1/events?token=phc_test'))
    for (const prefix of ['//evil.example', 'https://evil.example', '/a?b', '/', 'x', `/${'a/'.repeat(20)}`])
      assert.deepEqual(await streams({ 'x-forwarded-prefix': prefix }), at('/ofrep/v1/events?token=phc_test'), prefix)
  })

  it('is absent while the stream accepts no more clients', async t => {
    const { askWith } = await startOfrep(t)
    assert.deepEqual(Object.keys((await askWith(bulkPath, { targetingKey: 'u' })).json), ['flags'])
  })

  it('makes a client that learned of a change from another front wait until this front serves it', async t => {
    const { askWith, compiled, looks } = await startOfrep(t)
    const served = computeChangeTag(compiled.project.uuid, compiled.revision)
    for (const [query, looked] of [
      ['', 0],
      ['?flagConfigEtag=', 0],
      [`?flagConfigEtag=${served}`, 0],
      [`?flagConfigEtag=${computeChangeTag(compiled.project.uuid, compiled.revision + 1)}`, 1],
    ] as const) {
      assert.equal((await askWith(bulkPath + query, { targetingKey: 'u' })).status, 200)
      assert.equal(looks(), looked, query)
    }
  })
})

describe('OFREP on a front', () => {
  const front = startedForTests(startFront)

  it('answers pages of other origins, and exposes the entity tag to them', async () => {
    const origin = 'https://shop.example'
    for (const path of [bulkPath, `${bulkPath}/`, `${bulkPath}/some-flag`]) {
      const preflight = await fetch(front.url + path, {
        method: 'OPTIONS',
        headers: {
          ...{ origin, 'access-control-request-method': 'POST' },
          'access-control-request-headers': 'authorization, content-type, if-none-match',
        },
      })
      assert.equal(preflight.status, 200)
      assert.equal(preflight.headers.get('access-control-allow-origin'), origin)
      assert.match(preflight.headers.get('access-control-allow-methods')!, /POST/)
      assert.match(preflight.headers.get('access-control-allow-headers')!, /if-none-match/)
    }
    const answer = await fetch(front.url + bulkPath, {
      method: 'POST',
      headers: { origin, 'x-api-key': testProjectKey, 'content-type': 'application/json' },
      body: '{"context":{"targetingKey":"u"}}',
    })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('access-control-allow-origin'), origin)
    assert.match(answer.headers.get('access-control-expose-headers')!, /etag/)
  })

  it('serves a flag from its creation to its deletion', async () => {
    const ask = async () => {
      const answer = await fetch(`${front.url}${bulkPath}/life`, {
        method: 'POST',
        headers: { authorization: `Bearer ${testProjectKey}`, 'content-type': 'application/json' },
        body: '{"context":{"targetingKey":"u"}}',
      })
      const { value, reason, errorCode } = (await answer.json()) as Item
      return [answer.status, value ?? errorCode, reason]
    }
    const flagsApi = '/api/projects/@current/feature_flags/'
    assert.deepEqual(await ask(), [404, 'FLAG_NOT_FOUND', undefined])
    await front.api('POST', flagsApi, { key: 'life', filters: { groups: [everybody] } })
    assert.deepEqual(await ask(), [200, true, 'STATIC'])
    await front.api('PATCH', `${flagsApi}life/`, { active: false })
    assert.deepEqual(await ask(), [200, false, 'DISABLED'])
    await front.api('DELETE', `${flagsApi}life/`)
    assert.deepEqual(await ask(), [404, 'FLAG_NOT_FOUND', undefined])
  })

  it('accepts only a public key, and treats a personal key as unknown', async () => {
    const answer = await fetch(front.url + bulkPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${testPersonalKey}`, 'content-type': 'application/json' },
      body: '{"context":{"targetingKey":"u"}}',
    })
    assert.equal(answer.status, 401)
  })
})
