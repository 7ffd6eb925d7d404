// What a key with one scope may call, read and change: every route of the private API with every scope.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { scopeObjects } from '#core/scopes.ts'
import type { RecordingView } from '#ports/events/recording-store.ts'
import type { RejectedView } from '#ports/events/reject-store.ts'
import { aReject } from '../ports/reject-store.contract.ts'
import { allScopesKey, type ManagementApi, startManagement } from '../support/management-api.ts'
import { aGroup, aMapping, anEventView, aPerson, created } from '../support/values.ts'

/** All scopes that each operation requires. A changed line is a decision. */
const scopesOf: Readonly<Record<string, string>> = {
  activity_log_list: 'activity_log:read',
  activity_log_list_all: '*',
  projects_list: 'project:read',
  projects_create: 'project:write',
  projects_retrieve: 'project:read',
  projects_update: 'project:write',
  projects_destroy: 'project:write',
  projects_reset_token: 'project:write',
  projects_rotate_secret_token: 'project:write',
  projects_delete_secret_token_backup: 'project:write',
  personal_api_keys_list: '*',
  personal_api_keys_create: '*',
  personal_api_keys_current: 'any',
  personal_api_keys_current_destroy: 'any',
  personal_api_keys_retrieve: '*',
  personal_api_keys_destroy: '*',
  users_me: 'user:read',
  users_me_sessions_list: 'any',
  users_me_sessions_destroy: 'any',
  users_me_sessions_destroy_others: 'any',
  users_list: '*',
  users_retrieve: '*',
  users_partial_update: '*',
  users_destroy: '*',
  users_reset_link_create: '*',
  users_sessions_list: '*',
  users_sessions_destroy: '*',
  users_sessions_destroy_all: '*',
  invitations_create: '*',
  invitations_destroy: '*',
  invitations_list: '*',
  session_create: 'any',
  session_link_check: 'any',
  session_link_create: 'any',
  session_retrieve: 'any',
  session_destroy: 'any',
  session_user_update: 'any',
  organizations_current: 'organization:read',
  organizations_list: 'organization:read',
  feature_flags_list: 'feature_flag:read',
  feature_flags_create: 'feature_flag:write',
  feature_flags_retrieve: 'feature_flag:read',
  feature_flags_update: 'feature_flag:write',
  feature_flags_destroy: 'feature_flag:write',
  feature_flags_versions_list: 'feature_flag:read',
  feature_flags_versions_retrieve: 'feature_flag:read',
  feature_flags_versions_diff: 'feature_flag:read',
  feature_flags_versions_restore: 'feature_flag:write',
  feature_flags_activity_all: 'feature_flag:read',
  feature_flags_activity: 'feature_flag:read',
  feature_flags_explain: 'feature_flag:read',
  feature_flags_test_evaluation: 'feature_flag:read person:read',
  feature_flags_bulk_delete: 'feature_flag:write',
  feature_flags_bulk_archive: 'feature_flag:write',
  feature_flags_status: 'feature_flag:read',
  feature_flags_archive: 'feature_flag:write',
  feature_flags_unarchive: 'feature_flag:write',
  feature_flags_enable: 'feature_flag:write',
  feature_flags_disable: 'feature_flag:write',
  feature_flags_set_release_condition_rollout: 'feature_flag:write',
  feature_flags_roll_out_to_everyone: 'feature_flag:write',
  feature_flags_bulk_update_tags: 'feature_flag:write',
  feature_flags_dependent_flags: 'feature_flag:read',
  feature_flags_bulk_keys: 'feature_flag:read',
  feature_flags_evaluation_reasons: 'feature_flag:read',
  feature_flags_my_flags: 'feature_flag:read',
  feature_flags_user_blast_radius: 'feature_flag:read person:read',
  feature_flags_reach: 'feature_flag:read person:read',
  feature_flags_usage: 'feature_flag:read',
  feature_flags_exposure: 'feature_flag:read',
  feature_flags_copy: 'feature_flag:write',
  cohorts_list: 'cohort:read',
  cohorts_create: 'cohort:write',
  cohorts_retrieve: 'cohort:read',
  cohorts_update: 'cohort:write',
  cohorts_destroy: 'cohort:write',
  cohorts_add_persons_to_static_cohort: 'cohort:write',
  cohorts_remove_person_from_static_cohort: 'cohort:write',
  cohorts_persons_list: 'cohort:read person:read',
  cohorts_recount: 'cohort:write',
  early_access_feature_list: 'early_access_feature:read',
  early_access_feature_create: 'early_access_feature:write',
  early_access_feature_retrieve: 'early_access_feature:read',
  early_access_feature_partial_update: 'early_access_feature:write',
  early_access_feature_destroy: 'early_access_feature:write',
  surveys_list: 'survey:read',
  surveys_create: 'survey:write',
  surveys_launch: 'survey:write',
  surveys_stop: 'survey:write',
  surveys_retrieve: 'survey:read',
  surveys_partial_update: 'survey:write',
  surveys_update: 'survey:write',
  surveys_stats: 'survey:read',
  surveys_stats_of_one: 'survey:read',
  surveys_destroy: 'survey:write',
  experiments_list: 'experiment:read',
  experiments_create: 'experiment:write',
  experiments_launch: 'experiment:write',
  experiments_end: 'experiment:write',
  experiments_pause: 'experiment:write',
  experiments_resume: 'experiment:write',
  experiments_archive: 'experiment:write',
  experiments_unarchive: 'experiment:write',
  experiments_reset: 'experiment:write',
  experiments_ship_variant: 'experiment:write',
  experiments_duplicate: 'experiment:write',
  experiments_retrieve: 'experiment:read',
  experiments_partial_update: 'experiment:write',
  experiments_destroy: 'experiment:write',
  persons_list: 'person:read',
  persons_bulk_delete: 'person:write',
  persons_deletion_status: 'person:read',
  persons_destroy: 'person:write',
  persons_distinct_ids_list: 'person:read',
  persons_export: 'person:read',
  persons_rebuild: 'person:write',
  persons_rebuild_status: 'person:read',
  persons_retrieve: 'person:read',
  persons_split: 'person:write',
  persons_values: 'person:read',
  persons_cohorts: 'person:read cohort:read',
  groups_types_list: 'group:read',
  groups_types_destroy: 'group:write',
  groups_list: 'group:read',
  groups_find: 'group:read',
  events_list: 'query:read',
  events_retrieve: 'query:read',
  events_live: 'query:read',
  events_export: 'query:read',
  event_definitions_list: 'event_definition:read',
  property_definitions_list: 'property_definition:read',
  query_create: 'query:read',
  mcp_tools_execute_sql: 'query:read',
  mcp_tools_read_taxonomy: 'query:read',
  rejected_events_list: 'query:read',
  rejected_events_retrieve: 'query:read',
  rejected_events_replay: 'query:write',
  replay_messages_list: 'session_recording:read',
  replay_messages_retrieve: 'session_recording:read',
  import_jobs_list: 'import_job:read',
  import_jobs_create: 'import_job:write',
  import_jobs_retrieve: 'import_job:read',
  import_jobs_update: 'import_job:write',
  import_jobs_publish: 'import_job:write',
  import_jobs_discard: 'import_job:write',
  import_jobs_report: 'import_job:read',
  import_jobs_counts: 'import_job:read',
  import_jobs_events: 'import_job:read query:read',
  ingestion_status: 'project:read',
  lost_records_list: '*',
  usage: 'project:read',
  ingestion_warnings_list: 'ingestion_warning:read',
}
const everyScope = scopeObjects.flatMap(object => [`${object}:read`, `${object}:write`])

/** Whether a key with only this scope has everything the operation requires. */
function opens(scope: string, needed: string): boolean {
  const object = scope.slice(0, scope.indexOf(':'))
  return needed
    .split(' ')
    .every(one => one === 'any' || one === scope || (scope.endsWith(':write') && one === `${object}:read`))
}

describe('a key with one scope', () => {
  it('is accepted only by operations that require just its scope', async t => {
    const api = await startManagement(t)
    const operations = new Set(api.routes.map(({ operation }) => operation.id))
    assert.deepEqual([...operations].sort(), Object.keys(scopesOf).sort())
    for (const { operation, scope, path } of api.routes)
      assert.equal(scope, scopesOf[operation.id], `${operation.id}: ${path}`)
    let calls = 0
    // Uses a project that does not exist, so that nothing is changed or deleted.
    const called = new Map(api.routes.map(route => [route.operation.id, route]))
    // Comes last, since it deletes the key.
    const ending = called.get('personal_api_keys_current_destroy')!
    called.delete(ending.operation.id)
    called.set(ending.operation.id, ending)
    // A key has no session (`users.test.ts`).
    for (const id of called.keys()) if (/^session_|^users_me_sessions/.test(id)) called.delete(id)
    for (const scope of everyScope) {
      const key = await api.addKey([scope])
      for (const [id, { method, path }] of called) {
        const address = path.replace(':projectId', '999').replaceAll(/:\w+/g, '1')
        const { status, text } = await api.call(method, address, { key, ...(method === 'GET' ? {} : { body: {} }) })
        calls++
        const isOpen = opens(scope, scopesOf[id]!)
        if (isOpen) assert.ok(status !== 401 && status !== 403, `${scope} at ${method} ${address}: ${text}`)
        else assert.equal(status, 403, `${scope} at ${method} ${address}: ${text}`)
      }
    }
    t.diagnostic(`${calls} calls: ${called.size} operations with each of ${everyScope.length} scopes`)
  })

  it('reads no other objects through the objects in its scope', async t => {
    const api = await startWorld(t)
    const secrets = Object.values(readable).flat()
    const seen = new Set<string>()
    let answers = 0
    const addresses = await readingAddresses(api)
    for (const object of scopeObjects) {
      const keys = [await api.addKey([`${object}:read`]), await api.addKey([`${object}:write`])]
      for (const address of addresses) {
        for (const key of keys) {
          const { text } = await api.call(...address, { key, ...(address[0] === 'POST' ? { body: asked } : {}) })
          answers++
          for (const secret of secrets) {
            if (!text.includes(secret)) continue
            seen.add(secret)
            assert.ok(readable[object]?.includes(secret), `${object} sees ${secret} at ${address.join(' ')}: ${text}`)
          }
        }
      }
    }
    t.diagnostic(`${answers} answers searched for ${secrets.length} words`)
    assert.deepEqual([...seen].sort(), secrets.toSorted(), 'each word is shown to a key with its scope')
  })

  it('reads no other objects in the entries of the activity log', async t => {
    const api = await startWorld(t)
    const payloads = { control: '"secret-payload"' }
    const changes: readonly (readonly [resource: string, body: object])[] = [
      ['feature_flags', { filters: { ...offForEverybody, payloads: null } }],
      ['experiments', { parameters: { feature_flag_payloads: payloads }, feature_flag: { filters: secretFilters } }],
      ['surveys', { targeting_flag_filters: secretFilters, archived: true }],
      ['early_access_feature', { stage: 'concept' }],
      ['cohorts', { name: 'Renamed' }],
    ]
    for (const [resource, body] of changes) {
      const { id } = (await api.call('GET', at(resource))).body.results.at(-1)
      const { status, text } = await api.call('PATCH', `${at(resource)}${id}/`, { body })
      assert.equal(status, 200, text)
      if (!['feature_flags', 'cohorts'].includes(resource))
        assert.equal((await api.call('DELETE', `${at(resource)}${id}/`)).status, 204)
    }
    await api.call('POST', at('rejected_events/replay'), { body: { filter: {} } })
    await api.call('DELETE', at('groups_types/0'))
    await api.call('DELETE', at(`persons/${uuid}`))
    await api.call('PATCH', '/api/projects/1/', { body: { name: 'secret-project' } })
    const logged = ['feature_flag', 'cohort', 'early_access_feature', 'survey', 'experiment', 'project']
    const all: typeof readable = { ...readable, project: ['secret-project', '"First"'] }
    const secrets = Object.values(all).flat()
    for (const object of scopeObjects) {
      const key = await api.addKey(['activity_log:read', `${object}:read`])
      const { text, body } = await api.call('GET', at('activity_log?limit=1000').replace(/\/$/, ''), { key })
      for (const secret of secrets)
        assert.equal(
          text.includes(secret),
          logged.includes(object) && all[object]!.includes(secret),
          `${object}, ${secret}: ${text}`,
        )
      const scopes = new Set(body.results.map((entry: { scope: string }) => entry.scope))
      assert.ok(scopes.size <= 1, `${object} sees ${[...scopes]}`)
    }
  })

  it('can neither use, change nor look up existing flags if the scope is not for flags', async t => {
    const api = await startManagement(t)
    const flag = async (key: string, over: object = {}) => {
      const { status, body, text } = await api.call('POST', at('feature_flags'), {
        body: { key, filters: offForEverybody, active: false, ...over },
      })
      assert.equal(status, 201, text)
      return body as { id: number }
    }
    const stopped = await flag('stopped')
    await flag('tested', { filters: { ...offForEverybody, multivariate } })
    const running = await api.call('POST', at('experiments'), { body: { name: 'R', feature_flag_key: 'tested' } })
    const opened = await flag('opened')
    const taken = await api.call('POST', at('early_access_feature'), {
      body: { name: 'T', stage: 'beta', feature_flag_id: opened.id },
    })
    assert.deepEqual([running.status, taken.status], [201, 201])
    const experiments = await api.addKey(['experiment:write', 'feature_flag:read'])
    const features = await api.addKey(['early_access_feature:write', 'feature_flag:read'])
    const surveys = await api.addKey(['survey:write'])
    const started = '2026-01-01T00:00:00Z'
    const feature = `${at('early_access_feature')}${taken.body.id}/`
    const attacks: [string, string, string, string, object?][] = [
      ['uses a flag and starts it', experiments, 'POST', at('experiments'), startedOn('tested', started)],
      [
        'uses a flag without starting it',
        experiments,
        'POST',
        at('experiments'),
        { name: 'A', feature_flag_key: 'tested' },
      ],
      [
        'starts a flag that another key uses',
        experiments,
        'PATCH',
        `${at('experiments')}${running.body.id}/`,
        { start_date: started },
      ],
      ['lets everyone opt in', features, 'POST', at('early_access_feature'), choosing(stopped.id, 'beta')],
      ['uses a flag without effect', features, 'POST', at('early_access_feature'), choosing(stopped.id, 'archived')],
      ['ends opt-ins', features, 'PATCH', feature, { stage: 'archived' }],
      ['ends opt-ins by deletion', features, 'DELETE', feature],
      ['reads a flag', surveys, 'POST', at('surveys'), linkedTo(stopped.id)],
      ['asks whether a flag exists', surveys, 'POST', at('surveys'), linkedTo(999)],
    ]
    const before = await everyFlag(api)
    for (const [what, key, method, path, body] of attacks) {
      const { status, body: answer } = await api.call(method, path, { key, ...(body === undefined ? {} : { body }) })
      assert.deepEqual([status, answer?.code], [403, 'permission_denied'], `${what}: ${JSON.stringify(answer)}`)
      assert.match(answer.detail, /lacks the scope 'feature_flag:(write|read)'/)
      assert.deepEqual(await everyFlag(api), before, what)
    }
    const owner = await api.addKey(['early_access_feature:write', 'feature_flag:write'])
    assert.equal((await api.call('PATCH', feature, { key: owner, body: { stage: 'archived' } })).status, 200)
    const opener = await api.addKey(['experiment:write', 'feature_flag:write'])
    const opening = { key: opener, body: { start_date: started } }
    assert.equal((await api.call('PATCH', `${at('experiments')}${running.body.id}/`, opening)).status, 200)
    const linking = await api.addKey(['survey:write', 'feature_flag:read'])
    const linked = await api.call('POST', at('surveys'), { key: linking, body: linkedTo(stopped.id) })
    assert.equal(linked.status, 201)
    const again = { key: surveys, body: { name: 'Renamed', linked_flag_id: stopped.id } }
    const renamed = await api.call('PATCH', `${at('surveys')}${linked.body.id}/`, again)
    assert.deepEqual(
      [renamed.status, renamed.body.linked_flag.filters],
      [200, null],
      'existing values may be sent back unchanged',
    )
  })

  it('can create, start and end the flags of its own objects if it is for experiments, features or surveys', async t => {
    const api = await startManagement(t)
    const experiments = await api.addKey(['experiment:write'])
    const made = await api.call('POST', at('experiments'), {
      key: experiments,
      body: { name: 'Mine', feature_flag_key: 'mine' },
    })
    assert.deepEqual([made.status, made.body.feature_flag.filters, made.body.feature_flag.active], [201, null, false])
    const start = { key: experiments, body: { start_date: '2026-01-01' } }
    assert.equal(
      (await api.call('PATCH', `${at('experiments')}${made.body.id}/`, start)).body.feature_flag.active,
      true,
    )
    assert.equal((await api.call('DELETE', `${at('experiments')}${made.body.id}/`, { key: experiments })).status, 204)
    const features = await api.addKey(['early_access_feature:write'])
    const feature = await api.call('POST', at('early_access_feature'), { key: features, body: { name: 'Own' } })
    const path = `${at('early_access_feature')}${feature.body.id}/`
    for (const stage of ['archived', 'beta'])
      assert.equal((await api.call('PATCH', path, { key: features, body: { stage } })).status, 200)
    assert.equal((await api.call('DELETE', path, { key: features })).status, 204)
    const surveys = await api.addKey(['survey:write'])
    const survey = await api.call('POST', at('surveys'), {
      key: surveys,
      body: { ...aSurvey, targeting_flag_filters: offForEverybody },
    })
    assert.deepEqual([survey.status, survey.body.targeting_flag.filters], [201, null])
    assert.equal((await api.call('DELETE', `${at('surveys')}${survey.body.id}/`, { key: surveys })).status, 204)
  })
})

describe('a key limited to one project', () => {
  it('neither reads nor changes another project by any route', async t => {
    const api = await startWorld(t)
    await api.call('POST', '/api/projects/', { body: { name: 'Second', api_token: 'phc_second' } })
    const key = await api.addKey(['*'], [2])
    const before = await everything(api)
    for (const { method, path } of api.routes.filter(route => route.path.includes(':projectId'))) {
      const address = path.replace(':projectId', '1').replaceAll(/:\w+/g, '1')
      const { status, text } = await api.call(method, address, { key, ...(method === 'GET' ? {} : { body: {} }) })
      assert.equal(status, 403, `${method} ${address}: ${text}`)
    }
    for (const { method, path } of api.routes.filter(route => !route.path.includes(':projectId'))) {
      if (method !== 'GET') continue
      const { text } = await api.call(method, path.replaceAll(/:\w+/g, '1'), { key })
      assert.doesNotMatch(text, /phc_first|secret-/, path)
    }
    assert.deepEqual((await api.call('GET', '/api/projects/@current/', { key })).body.id, 2)
    assert.deepEqual(await everything(api), before)
  })

  it('cannot copy objects of another project into its own', async t => {
    const api = await startWorld(t)
    await api.call('POST', '/api/projects/', { body: { name: 'Second', api_token: 'phc_second' } })
    const key = await api.addKey(['*'], [2])
    const before = await everything(api)
    const [flag] = (await api.call('GET', at('feature_flags'))).body.results
    const [cohort] = (await api.call('GET', at('cohorts'))).body.results
    const second = (resource: string) => `/api/projects/2/${resource}/`
    const refused: [string, object][] = [
      [second('early_access_feature'), choosing(flag.id, 'beta')],
      [second('surveys'), linkedTo(flag.id)],
      [second('feature_flags'), { key: 'k', filters: inCohort(cohort.id) }],
      [second('cohorts'), { name: 'c', filters: cohortOf({ key: 'id', type: 'cohort', value: cohort.id }) }],
    ]
    for (const [path, body] of refused)
      assert.equal((await api.call('POST', path, { key, body })).status, 400, `${path} ${JSON.stringify(body)}`)
    const members = { key, body: { name: 'm', is_static: true, distinct_ids: ['ada'] } }
    assert.deepEqual((await api.call('POST', second('cohorts'), members)).body.members.unknown, ['ada'])
    const own = await api.call('POST', second('feature_flags'), { key, body: { key: 'own' } })
    const copied = async (from: number, to: number, flagKey: string) =>
      api.call('POST', '/api/organizations/@current/feature_flags/copy_flags/', {
        key,
        body: { feature_flag_key: flagKey, from_project: from, target_project_ids: [to] },
      })
    assert.equal((await copied(1, 2, flag.key)).status, 403)
    assert.match((await copied(2, 1, own.body.key)).body.failed[0].errors[0], /no access to this project/)
    const experiment = { key, body: { name: 'x', feature_flag_key: 'tested' } }
    const made = await api.call('POST', second('experiments'), experiment)
    assert.notEqual(made.body.feature_flag.id, flag.id, 'a separate flag with the same key')
    assert.deepEqual(await everything(api), before)
  })
})

/** What a key that reads these objects sees, of the world of `startWorld`. */
const readable: Readonly<Record<string, readonly string[]>> = {
  feature_flag: ['secret-condition', 'secret-payload'],
  cohort: ['secret-cohort'],
  person: ['secret-person'],
  group: ['secret-group'],
  early_access_feature: ['secret-feature'],
  survey: ['secret-question'],
  experiment: ['secret-hypothesis'],
  query: ['secret-event', 'secret-reject'],
  event_definition: ['secret-name'],
  property_definition: ['secret-property'],
  session_recording: ['secret-session'],
  ingestion_warning: ['secret-warning'],
}

const at = (resource: string) => `/api/projects/1/${resource}/`
const asked = { distinct_id: 'ada' }
const offForEverybody = { groups: [{ properties: [], rollout_percentage: 0 }] }
const multivariate = {
  variants: ['control', 'test'].map(key => ({ key, rollout_percentage: 50 })),
}
const condition = (value: string) => ({ key: 'email', type: 'person', operator: 'exact', value: [value] })
const secretFilters = { groups: [{ properties: [condition('secret-condition')], rollout_percentage: 100 }] }
const cohortOf = (filter: object) => ({ properties: { type: 'OR', values: [filter] } })
const inCohort = (id: number) => ({ groups: [{ properties: [{ key: 'id', type: 'cohort', value: id }] }] })
const startedOn = (key: string, date: string) => ({ name: 'A', feature_flag_key: key, start_date: date })
const choosing = (flagId: number, stage: string) => ({ name: 'A', stage, feature_flag_id: flagId })
const linkedTo = (flagId: number) => ({ ...aSurvey, linked_flag_id: flagId })
const aSurvey = { name: 'Why', type: 'popover', questions: [{ type: 'open', question: 'secret-question' }] }

async function everyFlag(api: ManagementApi) {
  return (await api.call('GET', at('feature_flags'))).body.results
}

/** All list items of project 1. */
async function everything(api: ManagementApi) {
  const lists = ['feature_flags', 'cohorts', 'early_access_feature', 'surveys', 'experiments', 'persons']
  const answers = [...lists.map(at), '/api/projects/1/'].map(path => api.call('GET', path))
  return (await Promise.all(answers)).map(({ body }) => body.results ?? body)
}

/** Every path that shows data, with the ids of existing objects. */
async function readingAddresses(api: ManagementApi): Promise<[string, string][]> {
  const idOf = async (resource: string) => (await api.call('GET', at(resource))).body.results[0].id as string
  const ids: Readonly<Record<string, string>> = {
    ':featureId': await idOf('early_access_feature'),
    ':surveyId': await idOf('surveys'),
    ':experimentId': await idOf('experiments'),
    ':uuid': uuid,
    ':version': '1',
    ':otherVersion': '2',
    ':projectId': '1',
    ':rejectId': uuid,
  }
  const concrete = (path: string) => path.replaceAll(/:\w+/g, name => ids[name] ?? name)
  const query = '?group_type_index=0&group_key=acme'
  const isReading = ({ method, path }: { method: string; path: string }) =>
    (method === 'GET' && !path.endsWith('/live')) || path.endsWith('/explain')
  return api.routes.filter(isReading).flatMap(({ method, path }): [string, string][] => {
    const whose = path.includes(':flagId') ? ['plain', 'members', 'kept', 'tested'] : ['']
    const cohorts = path.includes(':cohortId') ? ['1', '2'] : ['']
    return whose.flatMap(flag =>
      cohorts.map((cohort): [string, string] => {
        const address = concrete(path.replace(':flagId', flag).replace(':cohortId', cohort))
        return [method, `${address}${path.includes('/groups') ? query : ''}`]
      }),
    )
  })
}

const uuid = '0195a000-0000-7000-8000-000000000001'
const timestampMs = Date.parse('2026-04-30T10:00:00Z')
const event = anEventView({
  ...{ uuid, event: 'paid', timestampMs, propertiesJson: '{"what":"secret-event"}' },
  ...{ personId: uuid, personCreatedAtMs: timestampMs, createdAtMs: timestampMs },
})
const reject: RejectedView = { ...aReject(1, 1, { body: 'secret-reject' }), replayedAtMs: null }
const replayed = {
  ...({ rejectId: uuid, result: 'stored' } as const),
  ...{ reason: null, field: null, eventCount: 1, refusedCount: 0 },
}
const seen = { firstCapturedAtMs: timestampMs, lastSeenMs: timestampMs }
const secretProperty = { name: 'secret-property', type: null, isSeenOnEvents: false }
const recording: RecordingView = {
  ...{ projectId: 1, uuid, sessionId: 'secret-session', windowId: 'w', distinctId: 'ada', snapshotSource: 'web' },
  ...{ lib: 'web', itemCount: 1, itemsBytes: 2, timestampMs, receivedAtMs: timestampMs },
}

/** Makes one object of each kind in project 1, each with a unique word. */
async function startWorld(t: TestContext): Promise<ManagementApi> {
  const api = await startManagement(t, {
    rejects: { replay: async () => ({ results: [replayed], next: null, remaining: 0 }) },
    events: {
      listEvents: async () => ({ events: [event], next: null }),
      findEvent: async () => event,
      listRejected: async () => ({ rejected: [reject], next: null }),
      listEventNames: async () => ({ count: 1, results: [{ name: 'secret-name', ...seen }] }),
      listPropertyNames: async () => ({ count: 1, results: [secretProperty] }),
      listRecordings: async () => ({ recordings: [recording], next: null }),
      findRecording: async () => ({ recording, items: null }),
    },
  })
  const person = aPerson({ uuid, properties: { email: 'secret-person' } })
  await api.commit({
    persons: [created(person)],
    mappings: [created(aMapping(person, 'ada')), created(aMapping(person, 'secret-person-hashed'))],
    groupTypes: [{ projectId: 1, name: 'company', index: 0 }],
    groups: [created(aGroup({ properties: { plan: 'secret-group' } }))],
    warnings: [{ projectId: 1, type: 'invalid_group_set', details: { what: 'secret-warning' }, timestampMs }],
  })
  const make = async (resource: string, body: object) => {
    const made = await api.call('POST', at(resource), { body, key: allScopesKey })
    assert.equal(made.status, 201, made.text)
    return made.body
  }
  await make('cohorts', { name: 'C', filters: cohortOf(condition('secret-cohort')) })
  await make('cohorts', { name: 'S', is_static: true, distinct_ids: ['ada'] })
  const plain = await make('feature_flags', {
    key: 'plain',
    filters: { ...secretFilters, payloads: { true: '"secret-payload"' } },
  })
  await make('feature_flags', { key: 'members', filters: inCohort(1) })
  await make('feature_flags', { key: 'kept', ensure_experience_continuity: true, filters: halfway })
  await api.addMissingHashKeys({
    ...{ projectId: 1, distinctId: 'ada', anonDistinctId: 'secret-person-hashed', flagKeys: ['kept'] },
  })
  await make('feature_flags', { key: 'tested', filters: { ...secretFilters, multivariate } })
  await make('early_access_feature', {
    ...{ name: 'F', stage: 'beta', feature_flag_id: plain.id },
    payload: { is: 'secret-feature' },
  })
  await make('surveys', { ...linkedTo(plain.id), targeting_flag_filters: secretFilters })
  await make('experiments', { name: 'E', feature_flag_key: 'tested', description: 'secret-hypothesis' })
  for (const key of ['plain', 'members', 'kept', 'tested'])
    await api.call('PATCH', `${at('feature_flags')}${key}/`, { body: { name: 'second version' } })
  return api
}

const halfway = { groups: [{ properties: [], rollout_percentage: 50 }] }
