// Copying flags of one project to another by a file: the export, the plan, and the writes.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { encodeFlagFile } from '#wire/management/flags/flag-file.ts'
import { type ClientError, PrivateApi } from '../../src/commands/client/private-api.ts'
import { describeAffectedPersons } from '../../src/commands/flags/confirm-change.ts'
import { fetchDefinitionLists, replaceIdsByNames } from '../../src/commands/flags/export-flags.ts'
import {
  buildWriteBody,
  formatDefinitionTitle,
  type PlannedWrite,
  planFlagImport,
} from '../../src/commands/flags/plan-import.ts'
import { type ListFiles, readFlagFiles } from '../../src/commands/flags/read-flag-files.ts'
import { writePlannedFlags } from '../../src/commands/flags/write-planned-flags.ts'
import { rollout } from '../support/flag-documents.ts'
import { allScopesKey, startManagement } from '../support/management-api.ts'
import { tempDir } from '../support/temp-dir.ts'
import { newPersons } from '../support/values.ts'

const person = (key: string, value: unknown) => ({ key, type: 'person', operator: 'exact', value })
const inCohort = (id: unknown) => ({ key: 'id', type: 'cohort', operator: 'in', value: id })
const flagIs = (id: unknown, value: unknown = true) => ({
  ...{ key: String(id), type: 'flag', operator: 'flag_evaluates_to', value },
})
const sets = (...properties: object[]) => ({ groups: [{ properties, rollout_percentage: 50 }] })
const allOf = (...values: object[]) => ({ properties: { type: 'AND', values } })

const seed = 'a seed that stays'
const rule = { id: '11111111-1111-4111-8111-111111111111', ...rollout('blue', 25, { seed }) }
const document = { version: 2, return_type: 'string', default_value: 'grey', rules: [rule] }

async function twoProjects(t: TestContext) {
  const api = await startManagement(t)
  const make = async (project: number, what: 'cohorts' | 'feature_flags', body: object, query = '') => {
    const made = await api.post(`/api/projects/${project}/${what}/${query}`, body)
    return made.id as number
  }
  const second = await api.post('/api/projects/', { name: 'Second' })
  assert.equal(second.id, 2)
  const folder = tempDir(t)
  let fileCount = 0
  const clientOf = (project: number) =>
    new PrivateApi({ instance: api.url, personalKey: allScopesKey, project: String(project) })
  const exported = async (project: number, keys: readonly string[] = []) =>
    replaceIdsByNames(await fetchDefinitionLists(clientOf(project)), keys)
  const fileOf = (content: unknown) => {
    const path = join(folder, `${++fileCount}.json`)
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
    return path
  }
  const planned = async (project: number, paths: readonly string[], lists: ListFiles = {}) =>
    planFlagImport(readFlagFiles(paths, lists).file, await fetchDefinitionLists(clientOf(project)))
  return {
    api,
    make,
    fileOf,
    exported,
    planned,
    textOf: async (project: number) => encodeFlagFile((await exported(project)).file),
    /** @returns the titles of all writes, in order. */
    imported: async (project: number, paths: readonly string[], lists: ListFiles = {}) => {
      const plan = await planned(project, paths, lists)
      assert.deepEqual(plan.problems, [])
      const written: string[] = []
      await writePlannedFlags(clientOf(project), plan, write => void written.push(formatDefinitionTitle(write)))
      return written
    },
    clientOf,
  }
}

/** Cohorts and flags that lead to one another, in the first project: ids there differ from those that copies get. */
async function withChain(t: TestContext) {
  const world = await twoProjects(t)
  const { api, make } = world
  await api.commit({
    groupTypes: [
      { projectId: 1, name: 'company', index: 0 },
      { projectId: 2, name: 'team', index: 0 },
      { projectId: 2, name: 'company', index: 1 },
    ],
  })
  await make(2, 'feature_flags', { key: 'of-the-second' })
  const base = await make(1, 'feature_flags', { key: 'z-base', name: 'Base', filters: sets(), tags: ['b', 'a'] })
  const testers = await make(1, 'cohorts', { name: 'Testers', is_static: true, description: 'by hand' })
  const nordic = await make(1, 'cohorts', { name: 'Nordic', filters: allOf(person('country', ['no', 'se'])) })
  const known = await make(1, 'cohorts', { name: 'Known', filters: allOf(inCohort(nordic), flagIs(base)) })
  await make(1, 'cohorts', { name: 'Of no flag', filters: allOf(person('a', 'b')) })
  await make(1, 'feature_flags', {
    ...{ key: 'a-chain', active: false, evaluation_runtime: 'server', evaluation_contexts: ['docs'] },
    ...{ bucketing_identifier: 'device_id', ensure_experience_continuity: false },
    filters: {
      ...sets(inCohort(known), inCohort(testers)),
      multivariate: {
        variants: [
          { key: 'x', rollout_percentage: 50 },
          { key: 'y', rollout_percentage: 50 },
        ],
      },
      payloads: { x: '{"type":"cohort","value":1}' },
    },
  })
  await make(1, 'feature_flags', {
    key: 'of-companies',
    filters: {
      groups: [{ properties: [{ ...person('plan', 'pro'), type: 'group', group_type_index: 0 }] }],
      aggregation_group_type_index: 0,
    },
  })
  await make(1, 'feature_flags', { key: 'rules', active: true, filters: document }, '?skip_validation=true')
  const old = await make(1, 'feature_flags', { key: 'old', filters: sets() })
  await api.patch(`/api/projects/1/feature_flags/${old}/`, { archived: true })
  const gone = await make(1, 'feature_flags', { key: 'gone', filters: sets() })
  await api.call('DELETE', `/api/projects/1/feature_flags/${gone}/`)
  return world
}

describe('the flags of a project as a file', () => {
  it('are imported in order of dependency, are exported as the same file, and change nothing if imported again', async t => {
    const { textOf, fileOf, imported, api } = await withChain(t)
    const text = await textOf(1)
    const file = fileOf(text)
    const written = await imported(2, [file])
    assert.deepEqual(written, [
      ...['cohort "Nordic"', 'flag z-base', 'cohort "Known"', 'cohort "Testers"'],
      ...['flag a-chain', 'flag of-companies', 'flag old', 'flag rules'],
    ])
    assert.deepEqual(await imported(2, [file]), [])
    await api.call('DELETE', '/api/projects/2/feature_flags/of-the-second/')
    assert.equal(await textOf(2), text)
    const { filters } = await api.get('/api/projects/2/feature_flags/of-companies/')
    assert.deepEqual([filters.aggregation_group_type_index, filters.groups[0].properties[0].group_type_index], [1, 1])
    const rules = await api.get('/api/projects/2/feature_flags/rules/')
    assert.deepEqual([rules.filters, rules.active], [document, true], 'seeds stay, so buckets do')
  })

  it('have names in place of ids, and what is left out is reported', async t => {
    const { exported, make } = await withChain(t)
    await make(1, 'feature_flags', { key: 'survey-targeting-1', filters: sets() })
    const { file, notes } = await exported(1)
    assert.deepEqual(file.groupTypes, ['company'])
    assert.deepEqual(file.flags.map(({ key }) => key).toSorted(), ['a-chain', 'of-companies', 'old', 'rules', 'z-base'])
    const chain = file.flags.find(({ key }) => key === 'a-chain')!
    assert.deepEqual(chain.filters.groups, sets(inCohort('Known'), inCohort('Testers')).groups)
    assert.deepEqual(chain.filters.payloads, { x: '{"type":"cohort","value":1}' })
    const known = file.cohorts.find(({ name }) => name === 'Known')!
    assert.deepEqual(known.filters, allOf(inCohort('Nordic'), flagIs('z-base')))
    assert.deepEqual(notes, [
      'omitted, since surveys create these flags themselves: survey-targeting-1.',
      'static cohorts, exported without their members: "Testers".',
    ])
  })

  it('include everything that the named flags use, and nothing else', async t => {
    const { exported } = await withChain(t)
    const { file } = await exported(1, ['a-chain'])
    assert.deepEqual(file.flags.map(({ key }) => key).toSorted(), ['a-chain', 'z-base'])
    assert.deepEqual(file.cohorts.map(({ name }) => name).toSorted(), ['Known', 'Nordic', 'Testers'])
    assert.deepEqual(file.groupTypes, [])
    await assert.rejects(exported(1, ['z-bass']), /no flag z-bass .*Did you mean z-base\?/)
  })

  it('are rejected if two cohorts in use have the same name', async t => {
    const { exported, make } = await twoProjects(t)
    await make(1, 'cohorts', { name: 'Same', filters: allOf(person('a', 'b')) })
    const id = await make(1, 'cohorts', { name: 'Same', filters: allOf(person('a', 'c')) })
    assert.equal((await exported(1)).file.cohorts.length, 0, 'no flag uses them')
    await make(1, 'feature_flags', { key: 'f', filters: sets(inCohort(id)) })
    await assert.rejects(exported(1), /Several cohorts are named "Same"/)
  })
})

describe('an import of a flag file', () => {
  const one = (flag: object, more: object = {}) => ({
    format: 'pennon_flags',
    format_version: 1,
    flags: [flag],
    ...more,
  })

  it('changes fields that differ, and does not change fields that the file does not contain', async t => {
    const { make, fileOf, planned, imported, api } = await twoProjects(t)
    await make(1, 'feature_flags', { key: 'f', name: 'stays', tags: ['t'], filters: sets(person('a', 'b')) })
    const path = fileOf(one({ key: 'f', active: true, filters: { ...sets(person('a', 'c')) } }))
    const [write] = (await planned(1, [path])).writes
    assert.deepEqual(write!.changes, [
      { path: 'filters.groups.0.properties.0.value', action: 'changed', before: 'b', after: 'c' },
    ])
    await imported(1, [path])
    const { name, tags, version } = await api.get('/api/projects/1/feature_flags/f/')
    assert.deepEqual([name, tags, version], ['stays', ['t'], 2])
  })

  it('reports every mistake with its flag and field before anything is written', async t => {
    const { make, fileOf, planned } = await twoProjects(t)
    await make(1, 'cohorts', { name: 'Static', is_static: true })
    const problemsOf = async (file: object) => (await planned(1, [fileOf(file)])).problems
    const flag = (key: string, ...properties: object[]) => ({ key, active: true, filters: sets(...properties) })
    assert.deepEqual(
      await problemsOf({
        ...one(flag('a', inCohort('Nobody'), flagIs('b'), inCohort(7))),
        cohorts: [{ name: 'Static', is_static: false, filters: allOf() }],
      }),
      [
        'cohort "Static": is_static is true in the project, and cannot be changed.',
        'flag a: filters.groups.0.properties.0.value: neither the file nor the project has a cohort "Nobody".',
        'flag a: filters.groups.0.properties.1.key: neither the file nor the project has a flag b.',
        "flag a: filters.groups.0.properties.2.value: unknown cohort 7: pass PostHog's list of cohorts with --cohorts.",
      ],
    )
    const grouped = { key: 'g', active: true, filters: { ...sets(), aggregation_group_type_index: 'company' } }
    assert.match((await problemsOf(one(grouped)))[0]!, /^flag g: filters\.aggregation_group_type_index: .*"company"/)
    const twice = one(flag('a'))
    assert.deepEqual(await problemsOf({ ...twice, flags: [...twice.flags, ...twice.flags] }), [
      'flag a: appears twice in the file.',
    ])
    const circle = { ...twice, flags: [flag('a', flagIs('b')), flag('b', flagIs('a'))] }
    assert.deepEqual(await problemsOf(circle), ['flag a → flag b → flag a: each refers to the next.'])
    const invalid = one({
      key: 'a b',
      active: true,
      evaluation_runtime: 'moon',
      filters: sets({ ...person('x', 1), operator: 'like' }),
    })
    const issues = await problemsOf(invalid)
    assert.deepEqual(
      issues.map(text => text.split(': ')[1]),
      ['key', 'evaluation_runtime', 'filters.groups.0.properties.0.operator'],
    )
    const rules = one({ key: 'r', active: true, filters: { ...document, return_type: 'number' } })
    assert.match((await problemsOf(rules))[0]!, /^flag r: filters\.default_value: /)
    assert.match(
      (await problemsOf(one({ key: 'r', active: true, filters: { version: 3 } })))[0]!,
      /^flag r: filters\.version: /,
    )
  })

  it('reports everything that the instance would reject before anything is written', async t => {
    const { make, fileOf, planned } = await twoProjects(t)
    const says = async (flag: object, ...expected: RegExp[]) => {
      const { problems } = await planned(1, [fileOf(one({ key: 'f', active: false, filters: sets(), ...flag }))])
      assert.equal(problems.length, expected.length, problems.join('\n'))
      for (const [index, problem] of problems.entries()) assert.match(problem, expected[index]!)
    }
    for (const [fields, fault] of [
      [{ name: 5 }, /^flag f: name: Must be of type string/],
      [{ tags: 'a' }, /^flag f: tags: Must be of type array/],
      [{ tags: ['a', 1] }, /^flag f: tags\.1: Must be of type string/],
      [{ archived: 'yes' }, /^flag f: archived: Must be of type boolean/],
      [{ active: true, archived: true }, /^flag f: active: An archived flag/],
      [{ evaluation_contexts: {} }, /^flag f: evaluation_contexts: /],
      [{ name: 'x'.repeat(10_001) }, /^flag f: name: /],
      [{ filters: document, ensure_experience_continuity: true }, /^flag f: ensure_experience_continuity: /],
      [{ filters: { ...document, default_value: '$true' } }, /^flag f: filters\.default_value: /],
      [
        { filters: { ...document, aggregation_group_type_index: 0 } },
        /^flag f: filters\.aggregation_group_type_index: /,
      ],
    ] as const)
      await says(fields, fault)
    await make(1, 'feature_flags', { key: 'f', filters: sets() })
    await says({ filters: document }, /^flag f: filters\.version: .*version 1 flag; the version cannot be changed/)
    const typed = { ...document, return_type: 'object', default_value: {}, rules: [] }
    await make(1, 'feature_flags', { key: 'g', filters: document }, '?skip_validation=true')
    await says({ key: 'g', filters: typed }, /^flag g: filters\.return_type: /)
    await says(
      { key: 'g', filters: sets() },
      /^flag g: filters\.version: .*version 2 flag; the version cannot be changed/,
    )
    await says(
      { filters: sets(flagIs('g')) },
      /^flag f: filters\.groups\.0\.properties\.0\.key: it refers to the flag g/,
    )
    const through = { cohorts: [{ name: 'Through', is_static: false, filters: allOf(flagIs('g')) }] }
    const { problems } = await planned(1, [
      fileOf(one({ key: 'f', active: true, filters: sets(inCohort('Through')) }, through)),
    ])
    assert.deepEqual(
      problems.map(problem => problem.split(': ').slice(0, 2)),
      [['cohort "Through"', 'filters.properties.values.0.key']],
    )
  })

  it('ignores the filters of a static cohort', async t => {
    const { fileOf, imported } = await twoProjects(t)
    const cohort = { name: 'Static', is_static: true, filters: allOf(person('a', 'b')) }
    const path = fileOf(one({ key: 'f', active: true, filters: sets(inCohort('Static')) }, { cohorts: [cohort] }))
    assert.deepEqual(await imported(1, [path]), ['cohort "Static"', 'flag f'])
    assert.deepEqual(await imported(1, [path]), [])
  })

  it('treats null as a field’s default', async t => {
    const { fileOf, imported } = await twoProjects(t)
    const nothing = { name: null, tags: null, archived: null, evaluation_contexts: null, evaluation_runtime: null }
    const cohort = { name: 'Pro', is_static: false, description: null, filters: allOf(person('plan', 'pro')) }
    const flag = { key: 'f', active: true, ...nothing, filters: sets(inCohort('Pro')) }
    const path = fileOf(one(flag, { cohorts: [cohort] }))
    assert.deepEqual(await imported(1, [path]), ['cohort "Pro"', 'flag f'])
    assert.deepEqual(await imported(1, [path]), [])
  })

  it('finds cycles that pass through existing flags of the project', async t => {
    const { make, fileOf, planned } = await twoProjects(t)
    const a = await make(1, 'feature_flags', { key: 'a', filters: sets() })
    await make(1, 'feature_flags', { key: 'b', filters: sets(flagIs(a)) })
    const { problems } = await planned(1, [fileOf(one({ key: 'a', active: true, filters: sets(flagIs('b')) }))])
    assert.deepEqual(problems, ['flag a → flag b → flag a: each refers to the next.'])
  })

  it('reports what is wrong with an invalid file', async t => {
    const { fileOf } = await twoProjects(t)
    const says = (content: unknown, text: RegExp) => assert.throws(() => readFlagFiles([fileOf(content)], {}), text)
    says('{', /is not valid JSON/)
    says('['.repeat(100_000) + ']'.repeat(100_000), /nested too deeply/)
    says('{"flags": [], "flags": []}', /has an object with the key "flags" twice/)
    says({ flags: [] }, /neither a file from pennon flags export nor a list/)
    says(one({}, { format_version: 2 }), /Unsupported format_version, expected 1/)
    says(one({}, { flag: [] }), /Unknown field: flag\./)
    says(one({ key: 'a', active: true }), /flags\.0 \(a\): filters is missing/)
    says(one({ key: 'a', active: true, filters: {}, rollout: 5 }), /flags\.0 \(a\): unknown field: rollout/)
    says(one({ key: 'a', filters: {} }), /active is missing/)
    says([{ key: 'a', filters: {} }], /entry 0 has no active/)
    const flagsOnly = fileOf([{ id: 1, key: 'a', name: '', active: true, filters: {} }])
    assert.throws(() => readFlagFiles([flagsOnly], { cohorts: [flagsOnly] }), /is not a list of cohorts/)
    assert.throws(() => readFlagFiles(['/nowhere.json'], {}), /\/nowhere\.json does not exist\./)
    assert.throws(() => readFlagFiles([fileOf(one({}))], { cohorts: ['x'] }), /pass it alone/)
  })

  it('reports what was written if it stops, and a second import continues from there', async t => {
    const { make, fileOf, planned, imported, clientOf, api } = await twoProjects(t)
    await make(1, 'feature_flags', { key: 'b', filters: sets() })
    const flags = ['a', 'b', 'c'].map(key => ({ key, active: true, filters: sets(person('n', key)) }))
    const path = fileOf({ ...one({}), flags })
    const plan = await planned(1, [path])
    await api.patch('/api/projects/1/feature_flags/b/', { name: 'meanwhile' })
    const written: PlannedWrite[] = []
    await assert.rejects(
      writePlannedFlags(clientOf(1), plan, write => void written.push(write)),
      (error: ClientError) => {
        assert.match(
          error.message,
          /^flag b: .* answered 409: .*Written so far: 1 flag\. Not written: flag b, flag c\. Run the command again/,
        )
        return error.exitCode === 2
      },
    )
    assert.deepEqual(written.map(formatDefinitionTitle), ['flag a'])
    assert.deepEqual(await imported(1, [path]), ['flag b', 'flag c'])
    assert.equal((await api.get('/api/projects/1/feature_flags/b/')).name, 'meanwhile')
  })

  it("accepts PostHog's lists, in pages, with cohorts and group types by their PostHog ids", async t => {
    const { fileOf, imported, planned, api } = await twoProjects(t)
    await api.commit({ groupTypes: [{ projectId: 1, name: 'company', index: 3 }] })
    const row = (id: number, key: string, filters: object, over: object = {}) => ({
      ...{ id, key, name: key, filters, active: true, deleted: false, tags: [], version: 7, created_by: { id: 1 } },
      ...{ ensure_experience_continuity: null, experiment_set: [], features: [], rollout_percentage: 50, ...over },
    })
    const pages = [
      {
        ...{ count: 6, next: 'https://us.posthog.com/next', previous: null },
        results: [
          row(901, 'needs-both', sets(inCohort(77), flagIs('900'))),
          row(902, 'deleted', sets(), { deleted: true }),
          row(903, 'encrypted', sets(), { has_encrypted_payloads: true }),
        ],
      },
      {
        ...{ count: 6, next: null, previous: null },
        results: [
          row(900, 'first', {}, { evaluation_tags: ['docs'], rollout_percentage: 20 }),
          row(904, 'companies', { ...sets(), aggregation_group_type_index: 0 }, { experiment_set: [5] }),
        ],
      },
    ]
    const cohorts = {
      results: [
        { id: 77, name: 'Outer', is_static: false, deleted: false, filters: allOf(inCohort(78)), groups: [] },
        { id: 78, name: 'Inner', is_static: true, deleted: false, filters: { properties: {} }, query: null },
        { id: 79, name: 'Unused', is_static: false, filters: allOf({ type: 'behavioral', key: 'x' }) },
      ],
    }
    const groupTypes = [{ group_type: 'company', group_type_index: 0, name_singular: null }]
    const paths = pages.map(page => fileOf(page))
    assert.deepEqual((await planned(1, paths)).problems, [
      "flag needs-both: filters.groups.0.properties.0.value: unknown cohort 77: pass PostHog's list of cohorts with --cohorts.",
      "flag companies: filters.aggregation_group_type_index: unknown group type 0: pass PostHog's list of group types with --group-types.",
    ])
    const lists = { cohorts: [fileOf(cohorts)], groupTypes: [fileOf(groupTypes)] }
    assert.deepEqual(readFlagFiles(paths, lists).notes, [
      'omitted, since encrypted payloads cannot be decrypted elsewhere: encrypted.',
      'exported without their experiments: companies.',
      'static cohorts, exported without their members: "Inner".',
      'skipped: 1 deleted flag.',
      'the list should have 6 flags, but the files have 5: pass all pages.',
    ])
    assert.deepEqual(await imported(1, paths, lists), [
      ...['cohort "Inner"', 'cohort "Outer"', 'flag first', 'flag needs-both', 'flag companies'],
    ])
    assert.deepEqual(await imported(1, paths, lists), [])
    const flag = async (key: string) => await api.get(`/api/projects/1/feature_flags/${key}/`)
    const first = await flag('first')
    assert.deepEqual(first.filters, { groups: [{ properties: [], rollout_percentage: 20 }] })
    assert.deepEqual(first.evaluation_contexts, ['docs'])
    const [cohort, dependency] = (await flag('needs-both')).filters.groups[0].properties
    assert.equal(dependency.key, String(first.id))
    assert.equal((await api.get(`/api/projects/1/cohorts/${cohort.value}/`)).name, 'Outer')
    assert.equal((await flag('companies')).filters.aggregation_group_type_index, 3)
  })

  it('counts the persons whose value of a flag with rules would change, using the seeds in the file', async t => {
    const { fileOf, planned, clientOf, api } = await twoProjects(t)
    const ids = Array.from({ length: 40 }, (_, index) => `user-${index}`)
    await api.commit(newPersons(ids.map(id => ({ ids: [id] }))))
    const filters = { ...document, default_value: null }
    const plan = await planned(1, [fileOf(one({ key: 'r', active: true, filters }))])
    const body = buildWriteBody(plan.writes[0]!, plan.ids)
    const isIn = (id: string) => {
      const digits = createHash('sha1').update(`${seed}.${id}`).digest('hex').slice(0, 15)
      return Number.parseInt(digits, 16) / 16 ** 15 <= 0.25
    }
    const gained = ids.filter(isIn).length
    assert.ok(gained > 0)
    const line = await describeAffectedPersons(clientOf(1), body, { keepsIdentity: true })
    assert.equal(line, `Of 40 stored persons, ${gained} gain the flag.`)
    const limited = await api.addKey(['feature_flag:read', 'person:read'])
    const asked = { key: limited, body: { definition: body } }
    const refused = await api.call('POST', '/api/projects/1/feature_flags/reach/?skip_validation=true', asked)
    assert.equal(refused.status, 403)
  })

  it('does not change which experiment an existing rule belongs to', async t => {
    const { make, api, textOf, fileOf, imported, exported } = await twoProjects(t)
    const split = {
      ...rule,
      ...{ rule_type: 'experiment', experiment_id: 4, paused: false, value: undefined },
      variants: ['x', 'y'].map(key => ({ key, weight: 50, value: key })),
      holdout: { id: 9, seed: 's', exclusion_percentage: 5 },
    }
    const filters = { ...document, rules: [split] }
    const id = await make(1, 'feature_flags', { key: 'r', filters }, '?skip_validation=true')
    const text = await textOf(1)
    assert.match(text, /"experiment_id": null/)
    assert.deepEqual((await exported(1)).notes, ['exported without their experiments: r.'])
    assert.deepEqual(await imported(1, [fileOf(text)]), [])
    await imported(1, [fileOf(text.replace('"paused": false', '"paused": true'))])
    const [stored] = (await api.get(`/api/projects/1/feature_flags/${id}/`)).filters.rules
    assert.deepEqual([stored.paused, stored.experiment_id, stored.holdout.id], [true, 4, 9])
    const byHand = text
      .replace('"experiment_id": null', '"experiment_id": 8')
      .replace('"paused": false', '"paused": true')
    assert.deepEqual(await imported(1, [fileOf(byHand)]), [], 'an experiment of another project means nothing here')
  })
})
