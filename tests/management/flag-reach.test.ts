// Counts of affected persons, by the evaluator that answers requests: of a condition, and of a draft of a flag compared
// with the served one.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { PortError } from '#ports/port-error.ts'
import { eventually } from '../support/eventually.ts'
import { fieldsOf } from '../support/fields-of.ts'
import { rollout, rulesDocument } from '../support/flag-documents.ts'
import {
  type ManagementApi,
  type Reply,
  type StartManagementOptions,
  startManagement,
} from '../support/management-api.ts'
import { aGroup, created, newPersons } from '../support/values.ts'

const flags = '/api/projects/1/feature_flags/'
const plan = (value: string) => ({ key: 'plan', type: 'person', value })
const condition = (...properties: object[]) => ({ properties })
const flagIs = (id: unknown, value = true) => ({ key: `${id}`, type: 'flag', operator: 'flag_evaluates_to', value })
const inCohort = (id: unknown) => ({ key: 'id', type: 'cohort', value: id })
const off = { groups: [{ properties: [], rollout_percentage: 0 }] }
const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] }
const variants = (...keys: string[]) => ({
  multivariate: { variants: keys.map(key => ({ key, rollout_percentage: 100 / keys.length })) },
})

/** Persons `user-0`, …: every third is on the plan `pro`; each fourth has a second id. */
async function withPersons(t: TestContext, count: number, options: StartManagementOptions = {}) {
  const api = await startManagement(t, options)
  const persons = Array.from({ length: count }, (_, index) => ({
    ids: [`user-${index}`, ...(index % 4 === 0 ? [`user-${index}-phone`] : [])],
    properties: { plan: index % 3 === 0 ? 'pro' : 'free' },
  }))
  await api.commit(newPersons(persons))
  return api
}

const create = (api: ManagementApi, key: string, filters: object, over: object = {}) =>
  api.post(flags, { key, filters, ...over })

const blastRadius = (api: ManagementApi, body: object, key?: string) =>
  api.call('POST', `${flags}user_blast_radius/`, { body, ...(key !== undefined && { key }) })

interface ReachLine extends Record<string, unknown> {
  readonly evaluated: number
  readonly by_value: { value: unknown; before: number; after: number }[]
  readonly changes: { from: unknown; to: unknown; count: number }[]
}

async function reach(api: ManagementApi, body: object): Promise<ReachLine[]> {
  const response = await askReach(api, body)
  const text = await response.text()
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/x-ndjson'], text)
  assert.ok(text.endsWith('\n'))
  return linesOf(text)
}

const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))

function askReach(
  api: ManagementApi,
  body: object,
  { key = 'phx_all-scopes', query = '', signal }: { key?: string; query?: string; signal?: AbortSignal } = {},
) {
  return fetch(`${api.url}${flags}reach/${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  })
}

/** The last line, as what it says of values. */
async function reached(api: ManagementApi, body: object) {
  const last = (await reach(api, body)).at(-1)!
  assert.equal(last.done, true)
  return last
}

/** The value that a flag request returns for a person. */
async function valueFor(api: ManagementApi, flag: string, distinctId: string): Promise<unknown> {
  return (await api.post(`${flags}${flag}/explain/`, { distinct_id: distinctId })).value
}

describe('the blast radius of a condition', () => {
  it('counts persons, in PostHog’s current and former field names, and ignores percentages', async t => {
    const api = await withPersons(t, 10)
    for (const [asked, affected] of [
      [condition(), 10],
      [condition(plan('pro')), 4],
      [{ ...condition(plan('PRO')), rollout_percentage: 1, variant: 'x', sort_key: 'a', users_affected: 2 }, 4],
      [condition(plan('free'), { key: 'plan', type: 'person', operator: 'icontains', value: 'r' }), 6],
      [condition({ key: 'absent', type: 'person', operator: 'is_not_set' }), 10],
    ] as const) {
      const { status, body, text } = await blastRadius(api, { condition: asked })
      assert.equal(status, 200, text)
      assert.deepEqual(body, { affected, total: 10, users_affected: affected, total_users: 10 }, JSON.stringify(asked))
    }
  })

  it('counts members of cohorts, and groups of a type', async t => {
    const api = await withPersons(t, 6)
    const cohorts = '/api/projects/1/cohorts/'
    const chosen = { name: 'Chosen', is_static: true, distinct_ids: ['user-1', 'user-2-phone', 'user-4-phone'] }
    const cohort = await api.post(cohorts, chosen)
    const member = inCohort(cohort.id)
    assert.equal((await blastRadius(api, { condition: condition(member) })).body.affected, 2)
    const groups = ['a', 'b', 'c'].map(key => created(aGroup({ key, properties: { seats: key === 'a' ? 5 : 50 } })))
    const groupTypes = [{ projectId: 1, name: 'company', index: 0 }]
    await api.commit({ groupTypes, groups: [...groups, created(aGroup({ typeIndex: 1, key: 'x' }))] })
    await create(api, 'refreshes-definitions', everybody)
    const large = { key: 'seats', type: 'group', group_type_index: 0, operator: 'gt', value: 10 }
    const ofFree = { ...large, group_type_index: 4 }
    const counted = await blastRadius(api, { condition: condition(large), group_type_index: 0 })
    assert.deepEqual([counted.body.affected, counted.body.total], [2, 3])
    assert.deepEqual((await blastRadius(api, { condition: condition(), group_type_index: 0 })).body.total, 3)
    const ofItself = { ...condition(large), aggregation_group_type_index: 0 }
    assert.deepEqual((await blastRadius(api, { condition: ofItself })).body, counted.body)
    assert.deepEqual((await blastRadius(api, { condition: condition(ofFree), group_type_index: 4 })).body.total, 0)
  })

  it('reads only persons whose stored text may match, with the same count as when reading all', async t => {
    let isNarrowed = true
    let read = 0
    const api = await startManagement(t, {
      wrap: store => ({
        ...store,
        async listPersonsAfter(projectId, { propertyParts, ...page }, ofCohortIds) {
          const narrowed = isNarrowed && propertyParts !== undefined ? { propertyParts } : {}
          const found = await store.listPersonsAfter(projectId, { ...page, ...narrowed }, ofCohortIds)
          read += found.results.length
          return found
        },
      }),
    })
    const values: readonly JsonValue[] = [
      ...['pro', 'PRO', 'Kelvin', '\u212aELVIN', 'İx', 'a"b\\/', '12345', 12345, parseJson('12345.0'), true, null],
      ...[['pro']],
      ...['x'.repeat(150), 'tab\t', '日本語', ''],
    ]
    const names = ['plan', 'i"k', 'naïve', '$os', '$os_name', '$initial_referrer', '$referrer', 'toString']
    const persons = Array.from({ length: 130 }, (_, index) => {
      const value = values[Math.floor(index / names.length) % values.length]!
      return { ids: [`user-${index}`], properties: { [names[index % names.length]!]: value, of: `number ${index}` } }
    })
    await api.commit(newPersons(persons))
    const filters = names.flatMap(key => [
      ...values.filter(value => value !== null).map(value => ({ key, type: 'person', value })),
      ...['is_set', 'is_not_set', 'is_not', 'icontains', 'regex', 'gt', 'not_regex'].map(operator => {
        return { key, type: 'person', operator, value: operator === 'gt' ? 5 : 'pro' }
      }),
    ])
    const tree = (type: string, entries: readonly object[]) => ({ properties: { type, values: entries } })
    const inTree = async (name: string, type: string, entries: readonly object[]) => {
      const body = { name, filters: tree(type, entries) }
      const cohort = await api.call('POST', '/api/projects/1/cohorts/', { body })
      assert.equal(cohort.status, 201, cohort.text)
      return { key: 'id', type: 'cohort', value: cohort.body.id }
    }
    const either = await inTree('either', 'OR', [plan('pro'), { ...plan('of'), key: 'of', value: 'number 7' }])
    const both = await inTree('both', 'AND', [either, { ...plan('x'), operator: 'is_not' }])
    const others = await inTree('others', 'AND', [{ ...plan('pro'), negation: true }])
    const conditions = [
      ...filters.map(filter => [filter]),
      ...[[either], [both], [others], [both, plan('pro')], [plan('pro'), { ...either, operator: 'not_in' }]],
    ]
    for (const properties of conditions) {
      isNarrowed = true
      const narrowed = await blastRadius(api, { condition: condition(...properties) })
      isNarrowed = false
      const whole = await blastRadius(api, { condition: condition(...properties) })
      assert.deepEqual([narrowed.status, narrowed.body], [200, whole.body], JSON.stringify(properties))
    }
    isNarrowed = true
    read = 0
    const seventh = { key: 'of', type: 'person', value: 'number 77' }
    assert.deepEqual((await blastRadius(api, { condition: condition(seventh) })).body.affected, 1)
    const draft = { groups: [{ properties: [seventh], rollout_percentage: 100 }] }
    const last = await reached(api, { definition: { key: 'new', filters: draft } })
    assert.deepEqual([last.gained, last.unchanged, last.evaluated, last.of], [1, 129, 130, 130])
    assert.ok(read <= 4, `${read} persons are read`)
  })

  it('rejects conditions that a flag would reject, with the path of the mistake', async t => {
    const api = await startManagement(t)
    const invalid = (over: object, attr: string, code = 'invalid_input') =>
      [{ condition: { ...condition(), ...over } }, `condition.${attr}`, code] as const
    await api.refuses(
      'POST',
      `${flags}user_blast_radius/`,
      [{}, 'condition', 'required'],
      [{ condition: [] }, 'condition', 'invalid'],
      invalid(condition({ ...plan('x'), operator: 'like' }), 'properties.0.operator'),
      invalid(condition({ key: 'id', type: 'cohort', value: 9 }), 'properties.0.value'),
      invalid({ propertes: [] }, 'propertes'),
      invalid({ nonsense: 1 }, 'nonsense'),
      invalid({ groups: [] }, 'groups'),
      [{ condition: JSON.parse('{"__proto__":{"properties":[]}}') }, 'condition.__proto__', 'invalid_input'],
      invalid({ rollout_percentage: 'abc' }, 'rollout_percentage', 'invalid'),
      invalid({ variant: 7 }, 'variant', 'invalid'),
      invalid({ aggregation_group_type_index: 'x' }, 'aggregation_group_type_index', 'invalid'),
      [{ condition: condition(), group_type_index: 5 }, 'group_type_index', 'invalid_input'],
      [{ condition: { aggregation_group_type_index: 1 }, group_type_index: 0 }, 'group_type_index', 'invalid_input'],
      [{ condition: condition(), groupTypeIndex: 0 }, 'groupTypeIndex', 'invalid_input'],
    )
  })

  it('is rejected for groups if a person, another group or a device would be read', async t => {
    const api = await withPersons(t, 1)
    const cohort = await api.post('/api/projects/1/cohorts/', { name: 'S', is_static: true })
    const groupTypes = ['company', 'team'].map((name, index) => ({ projectId: 1, name, index }))
    await api.commit({ groupTypes, groups: [created(aGroup({ key: 'a' }))] })
    const device = await create(api, 'by-device', everybody, { bucketing_identifier: 'device_id' })
    const other = await create(api, 'of-persons', everybody)
    const seats = (index: number) => ({ key: 'seats', type: 'group', group_type_index: index, operator: 'is_not_set' })
    for (const [filter, ofGroups, ofPersons] of [
      [{ ...inCohort(cohort.id), operator: 'not_in' }, 400, 200],
      [{ ...plan('pro'), operator: 'is_not' }, 400, 200],
      [{ key: 'created_at', type: 'person_metadata', operator: 'is_not_set' }, 400, 200],
      [seats(1), 400, 200],
      [seats(0), 200, 200],
      [flagIs(other.id, false), 400, 200],
      [flagIs(device.id, false), 400, 400],
    ] as const) {
      const groups = await blastRadius(api, { condition: condition(filter), group_type_index: 0 })
      const persons = await blastRadius(api, { condition: condition(filter) })
      assert.deepEqual([groups.status, persons.status], [ofGroups, ofPersons], JSON.stringify(filter))
      const definition = { key: 'new', filters: { groups: [condition(filter)] } }
      assert.equal((await askReach(api, { definition })).status, ofPersons, JSON.stringify(filter))
    }
  })

  it('requires scopes for all data that the count reveals', async t => {
    const api = await withPersons(t, 1)
    const cohort = await api.post('/api/projects/1/cohorts/', { name: 'S', is_static: true })
    const persons = ['feature_flag:read', 'person:read']
    const member = condition(inCohort(cohort.id))
    const ofMembers = await create(api, 'of-members', { groups: [member] })
    const further = await create(api, 'further', { groups: [condition(flagIs(ofMembers.id))] })
    for (const [scopes, body, status] of [
      [['feature_flag:read'], { condition: condition() }, 403],
      [['person:read'], { condition: condition() }, 403],
      [persons, { condition: condition() }, 200],
      [persons, { condition: condition(), group_type_index: 0 }, 403],
      [[...persons, 'group:read'], { condition: condition(), group_type_index: 0 }, 200],
      [persons, { condition: member }, 403],
      [[...persons, 'cohort:read'], { condition: member }, 200],
      [persons, { condition: condition(flagIs(further.id)) }, 403],
      [[...persons, 'cohort:read'], { condition: condition(flagIs(further.id)) }, 200],
    ] as const) {
      const answer = await blastRadius(api, body, await api.addKey(scopes))
      assert.equal(answer.status, status, `${scopes}: ${JSON.stringify(body)}: ${answer.text}`)
    }
  })
})

describe('the reach of a draft flag', () => {
  it('counts persons who would gain, lose or change the value, exactly as their flag requests would show', async t => {
    const api = await withPersons(t, 40)
    const flag = await create(api, 'beta', { groups: [{ properties: [plan('pro')], rollout_percentage: 60 }] })
    const draft = {
      groups: [
        { properties: [plan('free')], rollout_percentage: 30 },
        { properties: [plan('pro')], rollout_percentage: 80, variant: 'b' },
      ],
      ...variants('a', 'b'),
    }
    const last = await reached(api, { definition: { id: flag.id, filters: draft } })
    const ids = Array.from({ length: 40 }, (_, index) => `user-${index}`)
    const before = await Promise.all(ids.map(id => valueFor(api, 'beta', id)))
    await api.patch(`${flags}beta/`, { filters: draft })
    const after = await Promise.all(ids.map(id => valueFor(api, 'beta', id)))
    const pairs = ids.map((_, index) => [before[index], after[index]] as const)
    const count = (holds: (from: unknown, to: unknown) => boolean) =>
      pairs.filter(([from, to]) => holds(from, to)).length
    assert.deepEqual(
      [last.gained, last.lost, last.moved, last.unchanged, last.evaluated, last.of, last.base_version, last.population],
      [
        count((from, to) => from === false && to !== false),
        count((from, to) => from !== false && to === false),
        count((from, to) => from !== false && to !== false && from !== to),
        count((from, to) => from === to),
        ...[40, 40, 1, 'persons'],
      ],
    )
    for (const { value, ...counts } of last.by_value)
      assert.deepEqual(counts, { before: count(from => from === value), after: count((_, to) => to === value) })
    for (const { from, to, count: changed } of last.changes)
      assert.equal(
        changed,
        count((a, b) => a === from && b === to),
        `${from} to ${to}`,
      )
    const byCondition = last.by_condition as number[]
    assert.equal(
      byCondition[0]! + byCondition[1]!,
      count((_, to) => to !== false),
    )
    assert.equal(byCondition[1], pairs.filter(([, to], index) => to !== false && index % 3 === 0).length)
    const split = await Promise.all(
      ids.map(async (id, index) => index % 4 === 0 && (await valueFor(api, 'beta', `${id}-phone`)) !== after[index]),
    )
    assert.equal(last.split_buckets, split.filter(Boolean).length)
    assert.ok((last.split_buckets as number) > 0 && (last.gained as number) > 0, 'the data has some of each')
  })

  it('compares with the current version, an earlier one or no flag, and takes missing fields from the current flag', async t => {
    const api = await withPersons(t, 9)
    const flag = await create(api, 'beta', everybody)
    await api.patch(`${flags}beta/`, { filters: off })
    const same = await reached(api, { definition: { id: flag.id } })
    assert.deepEqual([same.gained, same.lost, same.base_version], [0, 0, 2])
    const since = await reached(api, { definition: { id: flag.id }, base: 1 })
    assert.deepEqual([since.gained, since.lost, since.base_version], [0, 9, 1])
    const fresh = await reached(api, { definition: { key: 'new', filters: { groups: [condition(plan('pro'))] } } })
    assert.deepEqual([fresh.gained, fresh.base_version, fresh.by_condition], [3, null, [3]])
    const served = await reached(api, { definition: { id: flag.id, active: false }, base: 1 })
    assert.deepEqual([served.lost, served.by_condition], [9, []])
    const sent = await api.get(`${flags}beta/`)
    const edited = await reached(api, { definition: { ...sent, filters: everybody } })
    assert.equal(edited.gained, 9, 'a flag is sent back as it was read')
    assert.equal((await api.get(`${flags}beta/`)).version, 2, 'nothing is written')
  })

  it('counts groups of the flag’s group type', async t => {
    const api = await startManagement(t)
    const groups = Array.from({ length: 450 }, (_, index) =>
      created(aGroup({ key: `g${index}`, properties: { seats: index } })),
    )
    await api.commit({ groupTypes: [{ projectId: 1, name: 'company', index: 0 }], groups })
    const filters = (value: number) => ({
      groups: [{ properties: [{ key: 'seats', type: 'group', group_type_index: 0, operator: 'lt', value }] }],
      aggregation_group_type_index: 0,
    })
    const flag = await create(api, 'teams', filters(100))
    const last = await reached(api, { definition: { id: flag.id, filters: filters(300) } })
    assert.deepEqual(
      [last.population, last.group_type_index, last.evaluated, last.gained, last.split_buckets],
      ['groups', 0, 450, 200, 0],
    )
  })

  it('follows flags that the draft depends on, and stored assignments', async t => {
    const api = await withPersons(t, 12)
    const other = await create(api, 'other', { groups: [condition(plan('pro'))] })
    const last = await reached(api, { definition: { key: 'new', filters: { groups: [condition(flagIs(other.id))] } } })
    assert.deepEqual([last.gained, last.by_value.length], [4, 2])
    const cycle = await askReach(api, {
      definition: { id: other.id, filters: { groups: [condition(flagIs(other.id))] } },
    })
    assert.deepEqual(
      [cycle.status, ((await cycle.json()) as JsonObject).attr],
      [400, 'definition.filters.groups.0.properties.0.key'],
    )
    const halves = { groups: [{ properties: [], rollout_percentage: 100 }], ...variants('a', 'b') }
    const kept = await create(api, 'kept', halves, { ensure_experience_continuity: true })
    await keepAnother(api, 'kept', 'user-1')
    const before = await reached(api, { definition: { id: kept.id } })
    assert.equal(before.moved, 0)
    const without = await reached(api, { definition: { id: kept.id, ensure_experience_continuity: false } })
    assert.equal(without.moved, 1)
  })

  it('requires a cohort scope if the draft, the former version or a dependency reads cohorts', async t => {
    const api = await withPersons(t, 1)
    const body = { name: 'S', is_static: true }
    const cohort = await api.post('/api/projects/1/cohorts/', body)
    const member = { groups: [condition(inCohort(cohort.id))] }
    const flag = await create(api, 'beta', member)
    const persons = await api.addKey(['feature_flag:read', 'person:read'])
    const cohorts = await api.addKey(['feature_flag:read', 'person:read', 'cohort:read'])
    const statuses = async (asked: object) => [
      (await askReach(api, asked, { key: persons })).status,
      (await askReach(api, asked, { key: cohorts })).status,
    ]
    assert.deepEqual(await statuses({ definition: { key: 'new', filters: member } }), [403, 200])
    assert.deepEqual(
      await statuses({ definition: { key: 'new', filters: { groups: [condition(flagIs(flag.id))] } } }),
      [403, 200],
    )
    assert.deepEqual(await statuses({ definition: { id: flag.id, filters: off } }), [403, 200])
    await api.patch(`${flags}beta/`, { filters: everybody })
    assert.deepEqual(await statuses({ definition: { id: flag.id, filters: off } }), [200, 200])
    assert.deepEqual(await statuses({ definition: { id: flag.id, filters: off }, base: 1 }), [403, 200])
  })

  it('is rejected for drafts that cannot be counted or that a write would reject', async t => {
    const api = await startManagement(t)
    const flag = await create(api, 'beta', everybody)
    await create(api, '99', everybody)
    const gone = await create(api, 'gone', everybody)
    await api.call('DELETE', `${flags}gone/`)
    await create(api, 'gone', everybody)
    const mixed = { groups: [{ aggregation_group_type_index: 0 }, { aggregation_group_type_index: null }] }
    const grouped = { ...everybody, aggregation_group_type_index: 0 }
    const draft = (definition: object, attr: string, code = 'invalid_input') =>
      [{ definition }, `definition.${attr}`, code] as const
    assert.equal((await askReach(api, { definition: { id: 99 } })).status, 404)
    await api.refuses(
      'POST',
      `${flags}reach/`,
      [{}, 'definition', 'required'],
      draft({}, 'key', 'required'),
      draft({ id: flag.id, fliters: {} }, 'fliters'),
      draft({ id: flag.id, colour: 1 }, 'colour'),
      draft({ id: flag.id, rollout_percentage: 5 }, 'rollout_percentage'),
      draft({ key: 'beta' }, 'key', 'unique'),
      draft({ id: flag.id, key: '99' }, 'key', 'unique'),
      draft({ id: gone.id, deleted: false }, 'key', 'unique'),
      draft({ key: 'a b' }, 'key'),
      draft({ id: flag.id, filters: { groups: 1 } }, 'filters.groups', 'invalid'),
      [{ definition: { id: flag.id }, base: 7 }, 'base', 'invalid_input'],
      [{ definition: { key: 'new' }, base: 1 }, 'base', 'invalid_input'],
      draft({ id: flag.id, bucketing_identifier: 'device_id' }, 'filters'),
      draft({ id: flag.id, filters: mixed }, 'filters'),
      draft({ id: flag.id, filters: grouped }, 'filters'),
    )
  })

  it('accepts ids and seeds of rules only if a write would accept them', async t => {
    const api = await withPersons(t, 40)
    const narrower = await api.addKey(['feature_flag:write', 'person:read'])
    const definition = { key: 'seeded', active: true, filters: rulesDocument('string', null, [rollout('new', 50)]) }
    const ask = async (query: string, key?: string) => {
      const response = await askReach(api, { definition }, { query, ...(key !== undefined && { key }) })
      const last = linesOf(await response.text()).at(-1)
      return [response.status, last.attr ?? last.gained ?? last.code]
    }
    assert.deepEqual(await ask(''), [400, 'definition.filters.rules.0.id'])
    assert.deepEqual(await ask('?skip_validation=true', narrower), [403, 'permission_denied'])
    const [, gained] = await ask('?skip_validation=true')
    const body = await api.post(`${flags}?skip_validation=true`, definition)
    const { lost } = await reached(api, { definition: { id: body.id, active: false } })
    assert.ok(gained > 0 && gained < 40)
    assert.equal(gained, lost, 'the same persons are in it once it is written')
  })

  it('counts all persons as unchanged, without reading them, if the flag is off before and after', async t => {
    const api = await withPersons(t, 3, {
      before: { listPersonsAfter: () => assert.fail('persons are read') },
    })
    const last = await reached(api, { definition: { key: 'new', active: false } })
    assert.deepEqual(
      [last.evaluated, last.of, last.unchanged, last.by_value],
      [3, 3, 3, [{ value: false, before: 3, after: 3 }]],
    )
  })
})

describe('counts of persons', () => {
  it('run one at a time per project, and are rejected when too many wait', async t => {
    let underWay = 0
    let mostUnderWay = 0
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const api = await withPersons(t, 3, {
      wrap: store => ({
        ...store,
        async listPersonsAfter(...asked) {
          mostUnderWay = Math.max(mostUnderWay, ++underWay)
          await held
          return store.listPersonsAfter(...asked).finally(() => underWay--)
        },
      }),
    })
    const asked = Array.from({ length: 40 }, () => blastRadius(api, { condition: condition(plan('pro')) }))
    const refused: Reply[] = []
    for (const one of asked) void one.then(answer => refused.push(answer))
    await eventually(() => refused.length === 23)
    const full = await askReach(api, { definition: { key: 'new' } })
    assert.equal(full.status, 429)
    release()
    for (const { status, body, headers } of refused)
      assert.deepEqual([status, body.code, headers.get('retry-after')], [429, 'too_many_scans', '5'])
    const answers = await Promise.all(asked)
    assert.equal(answers.filter(({ status }) => status === 200).length, 17)
    assert.equal(mostUnderWay, 1)
  })

  it('start their response while they wait, and use the definitions and permissions at the time they run', async t => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    let isHeld = false
    const api = await withPersons(t, 3, {
      before: {
        listPersonsAfter: async () => {
          isHeld = true
          await held
        },
      },
    })
    const other = await create(api, 'other', everybody)
    const member = condition(flagIs(other.id))
    const first = blastRadius(api, { condition: condition(plan('pro')) })
    await eventually(() => isHeld)
    const persons = ['feature_flag:read', 'person:read']
    const key = await api.addKey(persons)
    const own = await api.get('/api/personal_api_keys/@current/', key)
    const ofLostKey = await askReach(api, { definition: { key: 'new' } }, { key })
    const waiting = await askReach(api, { definition: { key: 'new', filters: { groups: [member] } } })
    assert.deepEqual([ofLostKey.status, waiting.status], [200, 200])
    const lines = waiting.body!.pipeThrough(new TextDecoderStream()).getReader()
    const line = JSON.parse((await lines.read()).value!)
    assert.deepEqual([line.evaluated, line.of, line.done], [0, 0, false])
    await api.patch(`${flags}other/`, { filters: { groups: [condition(plan('pro'))] } })
    await api.call('DELETE', `/api/personal_api_keys/${own.id}/`)
    release()
    assert.equal((await first).status, 200)
    assert.match(await ofLostKey.text(), /\n{"error":{"code":"access_ended"/)
    let rest = ''
    for (let read = await lines.read(); !read.done; read = await lines.read()) rest += read.value
    assert.equal(linesOf(rest).at(-1).gained, 1)
  })

  it('report progress, and stop when the client disconnects', async t => {
    let pages = 0
    const gone = new AbortController()
    const api = await withPersons(t, 300, {
      wrap: store => ({
        ...store,
        async listPersonsAfter(projectId, { afterPersonId }, ofCohortIds) {
          pages++
          api.clock.advance(1_000)
          if (pages === 3) gone.abort()
          await setImmediate()
          return store.listPersonsAfter(projectId, { afterPersonId, limit: 10 }, ofCohortIds)
        },
      }),
    })
    const definition = { key: 'new' }
    await assert.rejects(askReach(api, { definition }, { signal: gone.signal }).then(response => response.text()))
    // It waits until the one before has given up its turn.
    const lines = await reach(api, { definition })
    assert.deepEqual(fieldsOf(lines, 'evaluated', 'of', 'done'), [
      [0, 0, false],
      ...Array.from({ length: 30 }, (_, index) => [10 * (index + 1), 300, false]),
      [300, 300, true],
    ])
    assert.ok(pages - 30 < 25, `${pages - 30} of 30 pages were read after the client left`)
  })

  it('end when the key loses its permissions, and report the reason when the state fails midway', async t => {
    let fail = false
    let end = async () => {}
    const api = await withPersons(t, 500, {
      before: {
        listPersonsAfter: async (_projectId, page) => {
          api.clock.advance(1_000)
          if (page.afterPersonId > 0) await end()
          if (page.afterPersonId > 0 && fail) throw new PortError('management-store', 'unavailable', new Error('down'))
        },
      },
    })
    const key = await api.addKey(['feature_flag:read', 'person:read'])
    const own = await api.get('/api/personal_api_keys/@current/', key)
    end = async () => void (await api.call('DELETE', `/api/personal_api_keys/${own.id}/`))
    const ended = await (await askReach(api, { definition: { key: 'new' } }, { key })).text()
    assert.equal(linesOf(ended).at(-1).error.code, 'access_ended')
    end = async () => {}
    fail = true
    const failed = await (await askReach(api, { definition: { key: 'new' } })).text()
    assert.equal(linesOf(failed).at(-1).error.code, 'state_unavailable')
  })
})

/** Stores for a person the hash key of another id for which the flag has another value. */
async function keepAnother(api: ManagementApi, flag: string, distinctId: string): Promise<void> {
  const own = await valueFor(api, flag, distinctId)
  for (let index = 0; ; index++) {
    const anonDistinctId = `anonymous-${index}`
    if ((await valueFor(api, flag, anonDistinctId)) === own) continue
    await api.addMissingHashKeys({ projectId: 1, distinctId, anonDistinctId, flagKeys: [flag] })
    return
  }
}
