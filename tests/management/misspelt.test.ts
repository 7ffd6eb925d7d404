import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fieldsOf } from '../support/fields-of.ts'
import { startManagement } from '../support/management-api.ts'

const flags = '/api/projects/1/feature_flags/'
const replay = '/api/projects/1/rejected_events/replay/'
const dropOlder = 'drop_events_older_than_seconds'

describe('a misspelt field in a body', () => {
  it('is rejected with a suggestion, and nothing is written', async t => {
    const api = await startManagement(t)
    await api.post(flags, { key: 'old', active: false })
    const key = { label: 'x', scopes: ['*'], scoped_team: [1] }
    for (const [method, path, body, attr, meant] of [
      ['POST', flags, { key: 'new', filter: { groups: [] } }, 'filter', 'filters'],
      ['POST', flags, { key: 'new', Filters: { groups: [] } }, 'Filters', 'filters'],
      ['POST', `${flags}?skip_validation=true`, { key: 'new', filtres: {} }, 'filtres', 'filters'],
      ['PATCH', `${flags}old/`, { rolloutPercentage: 10 }, 'rolloutPercentage', 'rollout_percentage'],
      ['PATCH', `${flags}old/`, { versoin: 1, active: true }, 'versoin', 'version'],
      ['PATCH', '/api/projects/1/', { anonymise_ips: true }, 'anonymise_ips', 'anonymize_ips'],
      ['PATCH', '/api/projects/1/', { drop_events_older_than: 3600 }, 'drop_events_older_than', dropOlder],
      ['PATCH', '/api/projects/1/', { geoip: false }, 'geoip', 'geoip_enabled'],
      ['POST', '/api/projects/', { nmae: 'Second' }, 'nmae', 'name'],
      ['POST', replay, { filter: {}, reason: 'invalid_timestamp' }, 'reason', 'filter.reason'],
      ['POST', '/api/personal_api_keys/', key, 'scoped_team', 'scoped_teams'],
    ] as const)
      await api.refuses(method, path, [body, attr, 'invalid_input', `Unknown field ${attr}. Did you mean ${meant}?`])
    const { results } = await api.get(flags)
    assert.deepEqual(fieldsOf(results, 'key', 'version', 'active'), [['old', 1, false]])
    assert.equal((await api.get('/api/projects/')).count, 1)
    assert.equal((await api.get('/api/personal_api_keys/')).count, 1)
  })

  it('is also rejected within filters, where ignoring it would make the flag match more persons', async t => {
    const api = await startManagement(t)
    for (const [fields, attr, meant] of [
      [{ filters: { group: [] } }, 'filters.group', 'groups'],
      [{ filters: { groups: [{ rollout: 5 }] } }, 'filters.groups.0.rollout', 'rollout_percentage'],
      [{ groups: [{ rollout_percentage: 5 }] }, 'groups', 'filters.groups'],
      [{ variants: [] }, 'variants', 'filters.multivariate.variants'],
      [{ enabled: false }, 'enabled', 'active'],
    ] as const) {
      const said = new RegExp(`Did you mean ${meant}\\?$`)
      await api.refuses('POST', flags, [{ key: 'new', ...fields }, attr, 'invalid_input', said])
    }
    const skipping = { body: { key: 'new', filters: { group: [] } } }
    const stored = await api.call('POST', `${flags}?skip_validation=true`, skipping)
    assert.deepEqual([stored.status, stored.body.warnings[0].attr], [201, 'filters.group'])
  })

  it('is rejected with its path if it is in the filter of a replay or in a project’s settings', async t => {
    const api = await startManagement(t)
    const project = '/api/projects/1/'
    for (const [method, path, body, attr, said] of [
      ['POST', replay, { filter: { reasons: 'x' } }, 'filter.reasons', 'Did you mean reason?'],
      ['POST', replay, { filter: { code: 'x' }, dry_run: true }, 'filter.code', 'Known fields: reason, field, event,'],
      ['PATCH', project, { quotas: { event: 5 } }, 'quotas.event', 'Did you mean events?'],
      ['PATCH', project, { quotas: { events: 5, heatmaps: 5 } }, 'quotas.heatmaps', 'Known fields: events,'],
      ['POST', '/api/projects/', { name: 'x', quotas: { llm: 5 } }, 'quotas.llm', 'Did you mean llm_events?'],
      [
        ...['PATCH', project, { session_replay_config: { record_canvs: true } }],
        ...['session_replay_config.record_canvs', 'Did you mean record_canvas?'],
      ],
    ] as [string, string, object, string, string][]) {
      await api.refuses(method, path, [body, attr, 'invalid_input', said])
    }
    const { quotas } = await api.get(project)
    assert.equal(quotas.events, null)
    const free = {
      survey_config: { apearance: {} },
      session_replay_config: { record_canvas: true, ai_config: {} },
      session_recording_linked_flag: { id: 1, key: 'a', variant: null },
    }
    const body = await api.patch(project, { ...free, quotas: { ...quotas, events: 5 } })
    assert.deepEqual([body.quotas.events, body.survey_config], [5, free.survey_config])
  })

  it('is distinguished from fields that PostHog’s tools send or that answers contain', async t => {
    const api = await startManagement(t)
    const ofTools = Object.fromEntries(
      [
        ...['analytics_dashboards', 'archived', 'can_edit', 'creation_context', 'evaluation_environments'],
        ...['experiment_set_metadata', 'has_enriched_analytics', 'is_simple_flag', 'is_used_in_replay_settings'],
        ...['last_called_at', 'last_modified_by', 'original_flag', 'performed_rollback', 'rollback_conditions'],
        ...['rollout_conditions', 'status', 'surveys', 'usage_dashboard', 'user_access_level', '_create_in_folder'],
        '_should_create_usage_dashboard',
      ].map(name => [name, null]),
    )
    const created = await api.post(flags, { key: 'tools', ...ofTools })
    await api.post(flags, { ...created, key: 'again' })
    const project = await api.get('/api/projects/1/')
    const ofTeams = { app_urls: [], is_demo: false, session_recording_opt_in: true, tags: [], week_start_day: 1 }
    const changed = await api.patch('/api/projects/1/', { ...project, ...ofTeams, name: 'Other' })
    assert.equal(changed.name, 'Other')
    const key = { label: 'x', scopes: ['*'], scoped_organizations: [], user_id: 1, mask_value: '…', value: '…' }
    await api.post('/api/personal_api_keys/', key)
  })
})

describe('a field that a write does not accept', () => {
  const filters = { groups: [{ properties: [], rollout_percentage: 40 }] }
  const survey = { name: 'Exit', type: 'popover', questions: [{ type: 'open', question: 'Why?' }] }

  it('is rejected by every write, and nothing is written', async t => {
    const api = await startManagement(t)
    const at = '/api/projects/1/'
    await api.post(flags, { key: 'old', filters })
    const made = await api.post(`${at}surveys/`, survey)
    await api.post(`${at}experiments/`, { name: 'Button', feature_flag_key: 'button' })
    await api.post(`${at}cohorts/`, { name: 'All', is_static: true })
    const feature = await api.post(`${at}early_access_feature/`, { name: 'Beta' })
    const key = { label: 'x', scopes: ['*'] }
    for (const [method, path, body] of [
      ['POST', flags, { key: 'new' }],
      ['POST', `${flags}?skip_validation=true`, { key: 'new' }],
      ['PATCH', `${flags}old/`, { active: false }],
      ['POST', `${flags}old/versions/1/restore/`, {}],
      ['DELETE', `${flags}old/`, {}],
      ['POST', `${flags}bulk_archive/`, { ids: [1] }],
      ['POST', `${flags}old/explain/`, { distinct_id: 'ada' }],
      ['POST', '/api/organizations/@current/feature_flags/copy_flags/', { feature_flag_key: 'old', from_project: 1 }],
      ['POST', `${at}cohorts/`, { name: 'New' }],
      ['PATCH', `${at}cohorts/1/`, { name: 'New' }],
      ['POST', `${at}surveys/`, survey],
      ['PATCH', `${at}surveys/${made.id}/`, { name: 'New' }],
      ['POST', `${at}experiments/`, { name: 'New', feature_flag_key: 'new' }],
      ['PATCH', `${at}experiments/1/`, { name: 'New' }],
      ['POST', `${at}early_access_feature/`, { name: 'New' }],
      ['PATCH', `${at}early_access_feature/${feature.id}/`, { name: 'New' }],
      ['PATCH', at, { name: 'New' }],
      ['PATCH', `${at}rotate_secret_token/`, {}],
      ['POST', '/api/personal_api_keys/', key],
      ['POST', replay, { filter: {} }],
      ['POST', `${at}query/`, { query: { kind: 'HogQLQuery', query: 'SELECT 1' } }],
    ] as const) {
      for (const name of ['colour', '__proto__', 'x'.repeat(100_000)]) {
        const text = `${JSON.stringify(body).slice(0, -1)}${Object.keys(body).length === 0 ? '' : ','}"${name}":null}`
        const answer = await api.call(method, path, { body: text })
        assert.deepEqual(
          [answer.status, answer.body.type, answer.body.code],
          [400, 'validation_error', 'invalid_input'],
        )
        assert.equal(answer.body.attr, name.length > 200 ? `${name.slice(0, 200)}…` : name, `${method} ${path}`)
      }
    }
    const { results } = await api.get(flags)
    assert.deepEqual(
      results.map((flag: { key: string; version: number }) => [flag.key, flag.version]).toSorted(),
      (await api.get(`${flags}?limit=99`)).results.map((flag: { key: string }) => [flag.key, 1]).toSorted(),
    )
    assert.equal((await api.get(at)).name === 'New', false)
  })

  it('is accepted as part of a PostHog object if its value has no effect', async t => {
    const api = await startManagement(t)
    const at = '/api/projects/1/'
    for (const [path, body, accepted, refused] of [
      ['feature_flags', { key: 'a' }, { _create_in_folder: 'Flags', rollback_conditions: [] }, 'rollback_conditions'],
      ['cohorts', { name: 'C', is_static: true }, { groups: [], query: null, cohort_type: 'static' }, 'groups'],
      ['experiments', { name: 'E', feature_flag_key: 'e' }, { holdout_id: null, status: 'draft' }, 'holdout_id'],
    ] as const) {
      await api.refuses('POST', `${at}${path}/`, [{ ...body, [refused]: [1] }, refused])
      const created = await api.post(`${at}${path}/`, { ...body, ...accepted })
      await api.patch(`${at}${path}/${created.id}/`, created)
    }
    const key = { label: 'x', scopes: ['*'], scoped_organizations: ['other'] }
    await api.refuses('POST', '/api/personal_api_keys/', [key, 'scoped_organizations'])
  })

  it('is, for example, a flag’s rollout_percentage that contradicts the flag’s first condition set', async t => {
    const api = await startManagement(t)
    const old = `${flags}a/`
    const percentage = (flag: { filters: typeof filters }) => flag.filters.groups[0]!.rollout_percentage
    assert.equal(percentage(await api.post(flags, { key: 'a', rollout_percentage: 30 })), 30)
    await api.refuses('POST', flags, [{ key: 'b', filters, rollout_percentage: 30 }, 'rollout_percentage'])
    await api.refuses('PATCH', old, [{ rollout_percentage: 100 }, 'rollout_percentage'])
    for (const same of [30, null]) assert.equal(percentage(await api.patch(old, { rollout_percentage: same })), 30)
    assert.equal((await api.get(old)).version, 1)
    assert.equal(percentage(await api.patch(old, { filters, rollout_percentage: 40 })), 40)
    assert.equal(percentage(await api.patch(old, { filters: {}, rollout_percentage: 50 })), 50)
    assert.equal((await api.get(old)).version, 3)
  })
})

describe('a misspelt query parameter', () => {
  it('is rejected with a suggestion', async t => {
    const api = await startManagement(t)
    for (const [path, name, meant] of [
      ['events', 'distinct', 'distinct_id'],
      ['events', 'distinctId', 'distinct_id'],
      ['events', 'order_by', 'orderBy'],
      ['events', 'person', 'person_id'],
      ['rejected_events', 'reasons', 'reason'],
      ['persons', 'serach', 'search'],
      ['persons', 'uuids', 'uuid'],
      ['groups', 'group_type_idx', 'group_type_index'],
      ['feature_flags', 'Active', 'active'],
      ['usage', 'datefrom', 'date_from'],
    ] as const) {
      const said = `Unknown parameter ${name}. Did you mean ${meant}?`
      await api.refuses('GET', `/api/projects/1/${path}/`, [`${name}=ada`, name, 'invalid_input', said])
    }
    await api.refuses('GET', '/api/projects/', ['limits=1', 'limits'])
  })

  it('is rejected in the same way as an offset or a later page in a list that uses a cursor', async t => {
    const api = await startManagement(t)
    for (const path of ['events', 'rejected_events', 'replay_messages']) {
      const [offset, page] = [['offset=100', 'offset', 'invalid_input'] as const, ['page=2&limit=5', 'page'] as const]
      await api.refuses('GET', `/api/projects/1/${path}/`, offset, page)
      await api.get(`/api/projects/1/${path}/?offset=0&page=1`)
    }
  })
})

describe('a body that is not JSON', () => {
  it('is rejected with the problem and its position, but without a quotation of the body', async t => {
    const api = await startManagement(t)
    for (const [body, said] of [
      ['{a: 1}', /: Expected property name or '}' \(line 1 column 2\)\.$/],
      ['{\n  key: 1}', /line 2 column 3/],
      ['{"a": 1,\n "b": }', /: Unexpected token '}'\.$/],
      ['{"a": 1 "b": 2}', /: Expected ',' or '}' after property value \(line 1 column 9\)\.$/],
      ['{"a": "b', /: Unterminated string \(line 1 column 9\)\.$/],
      ['{"a":', /: Unexpected end of JSON input\.$/],
      ['{"key": 1', /JSON.*line 1 column 10|Unexpected end/],
      ['hunter2', /: Unexpected token 'h'\.$/],
    ] as const) {
      await api.refuses('POST', flags, [body, null, 'invalid', said])
      assert.doesNotMatch((await api.call('POST', flags, { body })).body.detail, /hunter2|"b"/)
    }
  })

  it('may also be missing: a creation is then rejected with that reason, and nothing is created', async t => {
    const api = await startManagement(t)
    for (const path of ['cohorts', 'feature_flags', 'surveys', 'experiments', 'early_access_feature']) {
      const missing = [undefined, null, 'required', 'request body is missing'] as const
      await api.refuses('POST', `/api/projects/@current/${path}/`, missing)
    }
    assert.equal((await api.get('/api/projects/@current/cohorts/')).count, 0)
    await api.patch('/api/projects/@current/')
  })
})
