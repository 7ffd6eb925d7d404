// Flags with documents of version 2, over HTTP: the stored form of a written document, rejected writes, and every other
// action that changes flags.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { fieldOf } from '../support/fields-of.ts'
import { experiment, personPredicate, release, rollout, rulesDocument } from '../support/flag-documents.ts'
import { startManagement } from '../support/management-api.ts'

const path = '/api/projects/1/feature_flags/'
const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

function documentOf(...rules: JsonObject[]): JsonObject {
  return { version: 2, return_type: 'boolean', default_value: false, rules }
}

/** A rule as a caller writes a new one: without what the service gives it. */
function written({ seed: _, ...rule }: JsonObject): JsonObject {
  return rule
}

const newRollout = written(rollout(true, 25))

async function start(t: TestContext) {
  const api = await startManagement(t)
  const post = (at: string, body: unknown) => api.call('POST', at, { body })
  const make = async (filters: JsonObject, over: JsonObject = {}) => {
    const made = await post(path, { key: 'typed', filters, ...over })
    assert.equal(made.status, 201, made.text)
    return made.body
  }
  const change = (body: unknown, flag: string | number = 'typed') => api.call('PATCH', `${path}${flag}/`, { body })
  const get = async (flag: string | number = 'typed') => await api.get(`${path}${flag}/`)
  return { api, post, make, change, get }
}

describe('a flag with rules', () => {
  it('is off by default, and gets ids and seeds from the server', async t => {
    const { make } = await start(t)
    const made = await make(documentOf(release(true), newRollout))
    assert.deepEqual([made.active, made.version], [false, 1])
    for (const given of [made.filters.rules[0].id, made.filters.rules[1].id, made.filters.rules[1].seed])
      assert.match(given, uuid)
    assert.equal((await make(documentOf(), { key: 'on', active: true })).active, true)
  })

  it('is replaced as a whole, if the client sends the flag’s current version', async t => {
    const { make, change } = await start(t)
    const { filters } = await make(documentOf(release(true), newRollout))
    const [first, second] = filters.rules
    const next = { ...filters, rules: [second, release(false)] }
    for (const [body, status, code, attr] of [
      [{ filters: next }, 400, 'required', 'version'],
      [{ filters: next, version: 7 }, 409, 'conflict', 'version'],
      [{ filters: {}, version: 1 }, 400, 'invalid_input', 'filters.version'],
      [{ filters: { ...next, return_type: undefined }, version: 1 }, 400, 'required', 'filters.return_type'],
      [{ filters: documentOf({ ...second, seed: 'mine' }), version: 1 }, 400, 'invalid_input', 'filters.rules.0.seed'],
    ] as const) {
      const refused = await change(body)
      assert.deepEqual([refused.status, refused.body.code, refused.body.attr], [status, code, attr], refused.text)
    }
    const changed = await change({ filters: next, version: 1 })
    assert.deepEqual([changed.status, changed.body.version], [200, 2])
    assert.deepEqual(changed.body.filters.rules[0], second)
    assert.notEqual(changed.body.filters.rules[1].id, first.id)
    const stale = await change({ filters: documentOf(first), version: 1 })
    assert.equal(stale.status, 409, 'an id that is gone by now is no fault of a caller who saw it')
    assert.equal((await change({ name: 'Named' })).body.version, 3, 'other fields need no version')
  })

  it('stores the document as written, and sending back the answer of GET changes nothing', async t => {
    const { make, change, get } = await start(t)
    const targeting = {
      properties: [
        personPredicate('email', 'icontains', '@b\\"\u2028', true),
        personPredicate('version', 'semver_gt', '1.2.3'),
        personPredicate('since', 'is_date_after', '-7d'),
      ],
    }
    const holdout = { id: null, exclusion_percentage: 0.01 }
    const shared = { targeting, description: 'why' }
    const kinds = (first: JsonValue, second: JsonValue) => [
      { ...release(first), ...shared },
      { ...written(rollout(first, 12.34)), ...shared, on_rollout_miss: 'return_default' },
      { ...written(experiment([first, second])), ...shared, holdout },
    ]
    const odd = { '': [{}, null, { __proto__x: 1 }], 'ü"': 1e-7 }
    const samples: [key: string, type: string, defaultValue: JsonValue, first: JsonValue, second: JsonValue][] = [
      ['yes', 'boolean', null, true, false],
      ['text', 'string', 'none', '\u0000"\\ü', 'b'],
      ['count', 'number', -0.5, 2 ** 53 - 1, 1e6],
      ['object', 'object', {}, odd, { a: { b: [] } }],
    ]
    for (const [key, type, defaultValue, first, second] of samples) {
      const document = { ...rulesDocument(type, defaultValue, []), rules: kinds(first, second) }
      const made = await make(document, { key })
      assert.deepEqual(withoutIdentity(made.filters), document)
      const shown = await get(key)
      assert.deepEqual(shown.filters, made.filters)
      const again = await change({ filters: shown.filters, version: 1 }, key)
      assert.deepEqual([again.status, again.body.version], [200, 1], again.text)
    }
  })

  it('preserves number literals', async t => {
    const { post, get } = await start(t)
    const rules = '[{"rule_type":"targeted_release","targeting":{"properties":[]},"value":1.50}]'
    const filters = `{"version":2.0,"return_type":"number","default_value":1e2,"rules":${rules}}`
    assert.equal((await post(path, `{"key":"typed","filters":${filters}}`)).status, 201)
    assert.deepEqual((await get()).filters.default_value, 100)
    const text = (await post(path, `{"key":"twice","filters":${filters}}`)).text
    for (const literal of ['"version":2.0', '"default_value":1e2', '"value":1.50']) assert.ok(text.includes(literal))
  })

  it('is rejected if an object has a duplicate key, unlike a version 1 flag', async t => {
    const { api, post } = await start(t)
    const twice = '{"version":2,"return_type":"boolean","default_value":true,"default_value":false,"rules":[]}'
    await api.refuses('POST', path, [`{"key":"typed","filters":${twice}}`, 'filters', 'invalid_input'])
    assert.equal((await post(path, '{"key":"old","filters":{"groups":[],"groups":[]}}')).status, 201)
  })

  it('rejects version 1 fields, and cannot switch versions', async t => {
    const { make, api, change } = await start(t)
    const filters = documentOf()
    await make(filters)
    await make({ groups: [] }, { key: 'old' })
    const wrong: readonly [fields: JsonObject, attr: string][] = [
      [{ ensure_experience_continuity: true }, 'ensure_experience_continuity'],
      [{ bucketing_identifier: 'distinct_id' }, 'bucketing_identifier'],
      [{ is_remote_configuration: true }, 'is_remote_configuration'],
      [{ has_encrypted_payloads: true }, 'has_encrypted_payloads'],
      [{ rollout_percentage: 5 }, 'rollout_percentage'],
    ]
    for (const [fields, attr] of wrong) {
      await api.refuses('POST', path, [{ key: 'new', filters, ...fields }, attr])
      await api.refuses('PATCH', `${path}typed/`, [fields, attr])
    }
    for (const [flag, sent, code] of [
      ['typed', { groups: [] }, 'invalid_input'],
      ['old', filters, 'invalid_input'],
      ['old', { ...filters, version: 3 }, 'unsupported_config_version'],
      ['typed', { ...filters, version: null }, 'unsupported_config_version'],
    ] as const)
      await api.refuses('PATCH', `${path}${flag}/`, [{ filters: sent, version: 1 }, 'filters.version', code])
    const allOff = { ensure_experience_continuity: false, bucketing_identifier: null, rollout_percentage: null }
    assert.equal((await change(allOff)).body.version, 1, 'nothing of it is anything')
  })

  it('is stored unchanged when validation is skipped', async t => {
    const { post, get, change } = await start(t)
    const filters = { ...documentOf(rollout(true, 200, { id: 'mine' })), more: 1 }
    const made = await post(`${path}?skip_validation=true`, { key: 'typed', filters })
    assert.equal(made.status, 201, made.text)
    assert.equal(made.body.warnings.length, 1)
    assert.deepEqual((await get()).filters, filters)
    assert.equal((await change({ name: 'Named' })).status, 200)
    assert.equal((await change({ filters: documentOf(), version: 2 })).status, 200, 'it can be repaired')
  })

  it('can be repaired by an ordinary write if its version is unknown, with ids and seeds from the server', async t => {
    const { api, post, change } = await start(t)
    await post(`${path}?skip_validation=true`, { key: 'typed', filters: { version: 3, rules: [] } })
    const id = '11111111-1111-4111-8111-111111111111'
    const own = { filters: documentOf({ ...newRollout, id, seed: 'mine' }) }
    await api.refuses('PATCH', `${path}typed/`, [own, 'filters.rules.0.id'])
    const repaired = await change({ filters: documentOf(newRollout) })
    assert.equal(repaired.status, 200, repaired.text)
    assert.match(repaired.body.filters.rules[0].seed, uuid)
  })
})

describe('references to a flag with rules', () => {
  const onFlag = (id: number) => ({ key: String(id), type: 'flag', value: true, operator: 'flag_evaluates_to' })
  const code = 'unsupported_dependency_config_version'

  it('are rejected in filters, direct or through other flags or cohorts', async t => {
    const { make, api } = await start(t)
    const { id } = await make(documentOf())
    const filters = { groups: [{ properties: [{ key: 'a', type: 'person', value: 1 }, onFlag(id)] }] }
    await api.refuses('POST', path, [{ key: 'direct', filters }, 'filters.groups.0.properties.1', code])

    const skipped = await api.post(`${path}?skip_validation=true`, { key: 'between', filters })
    assert.equal(skipped.warnings[0].code, code)
    const behind = { key: 'behind', filters: { groups: [{ properties: [onFlag(skipped.id)] }] } }
    await api.refuses('POST', path, [behind, 'filters.groups.0.properties.0', code])

    const cohorts = '/api/projects/1/cohorts/'
    const tree = { properties: { type: 'OR', values: [onFlag(id)] } }
    await api.refuses('POST', cohorts, [{ name: 'Typed', filters: tree }, 'filters.properties.values.0', code])
    const stored = await api.post(`${cohorts}?skip_validation=true`, { name: 'Typed', filters: tree })
    const inCohort = { groups: [{ properties: [{ key: 'id', type: 'cohort', value: stored.id }] }] }
    await make({ groups: [] }, { key: 'plain' })
    await api.refuses('PATCH', `${path}plain/`, [{ filters: inCohort }, 'filters.groups.0.properties.0', code])
  })

  it('are rejected in early access features and experiments', async t => {
    const { make, api, get } = await start(t)
    const { id, filters } = await make(documentOf(newRollout))
    const feature = { name: 'Early', feature_flag_id: id }
    await api.refuses('POST', '/api/projects/1/early_access_feature/', [feature, 'feature_flag_id'])
    const split = { name: 'Split', feature_flag_key: 'typed' }
    await api.refuses('POST', '/api/projects/1/experiments/', [split, 'feature_flag_key'])
    assert.deepEqual((await get()).filters, filters)
  })

  it('are allowed from a rule to an experiment, but only in the same project', async t => {
    const { make, api } = await start(t)
    const { id } = await api.post('/api/projects/1/experiments/', { name: 'Split', feature_flag_key: 'split' })
    const linked = (experimentId: number) => {
      const holdout = { id: 3, exclusion_percentage: 5 }
      return documentOf(written(experiment([true, false], { experiment_id: experimentId, holdout })))
    }
    const { version } = await make(linked(id))
    const other = { filters: linked(id + 1), version }
    await api.refuses('PATCH', `${path}typed/`, [other, 'filters.rules.0.experiment_id'])
  })

  it('prevent an experiment that a rule names from being deleted', async t => {
    const { make, post, change, api } = await start(t)
    const { body: split } = await post('/api/projects/1/experiments/', { name: 'Split', feature_flag_key: 'split' })
    const { filters } = await make(documentOf(written(experiment([true, false], { experiment_id: split.id }))))
    const at = `/api/projects/1/experiments/${split.id}/`
    const inRules = ['deleted', 'invalid_input', /^Rules of flag "typed" belong to the experiment/] as const
    await api.refuses('DELETE', at, [undefined, ...inRules])
    await api.refuses('PATCH', at, [{ deleted: true }, ...inRules])
    const [rule] = filters.rules
    assert.equal((await change({ filters: documentOf({ ...rule, experiment_id: null }), version: 1 })).status, 200)
    assert.equal((await api.call('DELETE', at)).status, 204)
    await api.refuses('POST', `${path}typed/versions/1/restore/`, [undefined, 'filters.rules.0.experiment_id'])
  })

  it('must exist when a deleted flag is restored', async t => {
    const { make, post, api, get } = await start(t)
    const { body: split } = await post('/api/projects/1/experiments/', { name: 'Split', feature_flag_key: 'split' })
    const { id } = await make(documentOf(written(experiment([true, false], { experiment_id: split.id }))))
    await api.call('DELETE', `${path}typed/`)
    assert.equal((await api.call('DELETE', `/api/projects/1/experiments/${split.id}/`)).status, 204)
    await api.refuses('PATCH', `${path}${id}/`, [{ deleted: false }, 'filters.rules.0.experiment_id'])
    assert.equal((await get(id)).deleted, true)
  })
})

describe('actions on a flag with rules', () => {
  it('can list the flag by the type of its values', async t => {
    const { make, api } = await start(t)
    await make(documentOf())
    await make(rulesDocument('number', 1, []), { key: 'count' })
    for (const [type, key] of [
      ['boolean', 'typed'],
      ['multivariant', 'count'],
    ]) {
      const body = await api.get(`${path}?type=${type}`)
      assert.deepEqual(fieldOf(body.results, 'key'), [key])
    }
  })

  it('keep every version, and can restore each', async t => {
    const { make, change, api, get } = await start(t)
    const { filters } = await make(documentOf(newRollout))
    const percentage = { ...filters, rules: [{ ...filters.rules[0], rollout_percentage: 50 }] }
    await change({ filters: percentage, version: 1 })
    const diff = await api.get(`${path}typed/versions/1/diff/2/`)
    assert.deepEqual(diff.changes, [
      { path: 'filters.rules.0.rollout_percentage', action: 'changed', before: 25, after: 50 },
    ])
    const restored = await api.post(`${path}typed/versions/1/restore/`)
    assert.equal(restored.version, 3)
    assert.deepEqual((await get()).filters, filters)
    const activity = await api.get(`${path}typed/activity/`)
    assert.equal(activity.results[1].detail.changes[0].path, 'filters.rules.0.rollout_percentage')
  })

  it('can enable, archive, tag and delete it, but nothing else', async t => {
    const { make, post, get } = await start(t)
    const { id, filters } = await make(documentOf(newRollout))
    for (const action of ['enable', 'disable', 'archive', 'unarchive'])
      assert.equal((await post(`${path}typed/${action}/`, undefined)).status, 200, action)
    const { version } = await get()
    for (const [action, body] of [
      ['set_release_condition_rollout', { condition_index: 0, rollout_percentage: 5, version }],
      ['roll_out_to_everyone', { version }],
    ] as const) {
      const refused = await post(`${path}typed/${action}/`, body)
      assert.deepEqual([refused.status, refused.body.code], [400, 'unsupported_config_version'])
    }
    const tagged = await post(`${path}bulk_update_tags/`, { ids: [id], action: 'add', tags: ['a'] })
    assert.deepEqual(tagged.body.updated, [{ id, tags: ['a'] }])
    assert.deepEqual((await get()).filters, filters)
    assert.equal((await post(`${path}bulk_archive/`, { ids: [id] })).status, 200)
    assert.equal((await get()).archived, true)
    assert.equal((await post(`${path}bulk_delete/`, { ids: [id] })).status, 200)
    assert.equal((await get(id)).deleted, true)
  })

  it('copy it with new seeds, which a second copy preserves', async t => {
    const { make, post, api, change } = await start(t)
    await post('/api/projects/', { name: 'Second' })
    const split = await post('/api/projects/1/experiments/', { name: 'Split', feature_flag_key: 'split' })
    const linked = written(experiment([true, false], { experiment_id: split.body.id }))
    const { filters } = await make(documentOf(newRollout, linked), { active: true })
    const copy = async () => {
      const asked = { feature_flag_key: 'typed', from_project: 1, target_project_ids: [2] }
      const { body } = await post('/api/organizations/@current/feature_flags/copy_flags/', asked)
      assert.deepEqual(body.failed, [])
      return body.success[0]
    }
    const seedsOf = (flag: { filters: { rules: { seed: string }[] } }) => fieldOf(flag.filters.rules, 'seed')
    const first = await copy()
    assert.deepEqual([first.active, first.notes.length], [true, 1])
    for (const [index, seed] of seedsOf(first).entries()) assert.notEqual(seed, filters.rules[index].seed)
    assert.equal(first.filters.rules[1].experiment_id, null)
    const [own, other] = filters.rules
    await change({ filters: documentOf(other, { ...own, rollout_percentage: 80 }), version: 1 })
    const second = await copy()
    assert.deepEqual(seedsOf(second), seedsOf(first).toReversed())
    assert.equal(second.filters.rules[1].rollout_percentage, 80)
    assert.equal((await api.get('/api/projects/2/feature_flags/typed/')).version, 2)

    const there = await post('/api/projects/2/experiments/', { name: 'Split', feature_flag_key: 'split' })
    const rules = [{ ...second.filters.rules[0], experiment_id: there.body.id }, second.filters.rules[1]]
    const relinked = { filters: { ...second.filters, rules }, version: 2 }
    await api.patch('/api/projects/2/feature_flags/typed/', relinked)
    assert.equal((await copy()).filters.rules[0].experiment_id, there.body.id, 'the other project keeps its experiment')
  })
})

/** The client's part of a stored document, without ids and seeds that the service adds. */
function withoutIdentity(filters: JsonObject): JsonObject {
  const rules = (filters.rules as JsonObject[]).map(({ id, seed, ...rule }) => {
    assert.match(id as string, uuid)
    if (rule.rule_type !== 'targeted_release') assert.match(seed as string, uuid)
    const holdout = rule.holdout as JsonObject | undefined
    if (holdout === undefined) return rule
    const { seed: holdoutSeed, ...sent } = holdout
    assert.match(holdoutSeed as string, uuid)
    return { ...rule, holdout: sent }
  })
  return { ...filters, rules }
}
